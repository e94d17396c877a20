"""torch.autograd.profiler and torch.profiler: events of operators, nodes and ranges, and the trace as a file."""

import json
import threading

import pytest
import torch
from torch.autograd.profiler import profile, record_function
from torch.profiler import ProfilerActivity, schedule


def events_of(run, **options):
    with profile(**options) as prof:
        run()
    return prof.kineto_results.events()


def named(events, name):
    return [e for e in events if e.name() == name]


def test_operators_nest_in_their_ranges():
    x = torch.ones(3)

    def run():
        with record_function("outer"):
            with record_function("inner"):
                torch.nn.functional.silu(x)
            x + 1

    events = events_of(run)
    outer, inner, add = (named(events, n)[0] for n in ("outer", "inner", "aten::add"))
    assert outer.start_ns() <= inner.start_ns() <= inner.end_ns() <= add.start_ns() <= add.end_ns() <= outer.end_ns()
    assert [outer.scope(), add.scope()] == [7, 0]
    assert outer.is_user_annotation() and outer.activity_type() == "user_annotation"
    assert not add.is_user_annotation() and add.activity_type() == "cpu_op"
    assert not [e for e in events if e.name().startswith("profiler::")]


def test_inputs_are_kept_when_asked_for():
    x = torch.ones(3, 4)

    def run():
        torch.cat([x, x], 1)
        x.t() @ x.add(1, alpha=2)

    cat, add, mm = (named(events_of(run, record_shapes=True), n)[0] for n in ("aten::cat", "aten::add", "aten::mm"))
    assert cat.structured_input_shapes() == [[[3, 4], [3, 4]], []] and cat.dtypes() == ["TensorList", "Scalar"]
    assert add.shapes() == [[3, 4], [], []] and add.concrete_inputs() == [None, None, 2]
    assert mm.shapes() == [[4, 3], [3, 4]] and mm.structured_input_strides() == [[1, 4], [4, 1]]
    assert mm.dtypes() == ["float", "float"]
    assert named(events_of(run), "aten::mm")[0].shapes() == []


def test_flops():
    a, b = torch.ones(2, 3, 4), torch.ones(2, 4, 5)
    events = events_of(lambda: (a @ b, a[0] @ b[0], a * 2), with_flops=True)
    assert named(events, "aten::bmm")[0].flops() == 2 * 2 * 3 * 4 * 5
    assert named(events, "aten::mm")[0].flops() == 2 * 3 * 4 * 5
    assert named(events, "aten::mul")[0].flops() == 24


def test_nodes_carry_the_numbers_of_their_operators():
    def run():
        x = torch.ones(3, requires_grad=True)
        (x * 2).sum().backward()

    events = events_of(run)
    for op, node in (("aten::mul", "MulBackward0"), ("aten::sum", "SumBackward0")):
        forward = named(events, op)[0]
        around, backward = named(events, f"autograd::engine::evaluate_function: {node}")[0], named(events, node)[0]
        assert forward.sequence_nr() == around.sequence_nr() == backward.sequence_nr() >= 0
        assert forward.fwd_thread_id() == 0 and backward.fwd_thread_id() == forward.start_thread_id()
        assert [around.scope(), backward.scope()] == [0, 1]
    leaf = named(events, "torch::autograd::AccumulateGrad")[0]
    assert leaf.sequence_nr() == -1
    with torch.no_grad():
        assert named(events_of(lambda: torch.ones(2) * 2), "aten::mul")[0].sequence_nr() == -1


def test_threads_are_told_apart():
    def run():
        torch.ones(2).neg()
        other = threading.Thread(target=lambda: torch.ones(2).exp())
        other.start()
        other.join()

    events = events_of(run)
    assert named(events, "aten::neg")[0].start_thread_id() != named(events, "aten::exp")[0].start_thread_id()


def test_an_operator_that_fails_ends_its_event():
    def run():
        with pytest.raises(RuntimeError):
            torch.ones(2) + torch.ones(3)
        torch.ones(2).neg()

    add, neg = (named(events_of(run), n)[0] for n in ("aten::add", "aten::neg"))
    assert add.start_ns() <= add.end_ns() <= neg.start_ns()


def test_ranges_outside_a_run_do_nothing():
    early = record_function("early")
    early.__enter__()
    with profile() as prof:
        early.__exit__(None, None, None)
        late = torch.autograd._record_function_with_args_enter("late", 1, 2)
        handle = torch.ops.profiler._record_function_enter("tensor", None)
        torch.ops.profiler._record_function_exit(handle)
        with torch._C._profiler._RecordFunctionFast("fast"):
            pass
    torch.autograd._record_function_with_args_exit(late)
    names = [e.name() for e in prof.kineto_results.events()]
    assert names == ["late", "tensor", "fast"]


def test_one_profiler_at_a_time():
    assert not torch.autograd._profiler_enabled()
    with profile():
        assert torch.autograd._profiler_enabled()
        with pytest.raises(RuntimeError, match="already enabled"):
            profile().__enter__()
    assert not torch.autograd._profiler_enabled()
    with pytest.raises(RuntimeError, match="not running"):
        torch.autograd._disable_profiler()


def test_schedule_and_trace(tmp_path):
    layer, runs = torch.nn.Linear(4, 4), []

    def ready(prof):
        prof.add_metadata("who", 'the "test"')
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
        runs.append({e.name for e in prof.events()})

    with torch.profiler.profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
        on_trace_ready=ready,
        record_shapes=True,
    ) as prof:
        for _ in range(5):
            layer(torch.ones(2, 4)).sum().backward()
            prof.step()
    (names,) = runs
    assert {"ProfilerStep*", "aten::linear", "aten::sum", "SumBackward0"} <= names
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert sorted(e["name"] for e in trace if "Step" in e["name"]) == ["ProfilerStep#2", "ProfilerStep#3"]
    linear = [e for e in trace if e["name"] == "aten::linear"]
    assert len(linear) == 2 and linear[0]["args"]["Input Dims"] == [[2, 4], [4, 4], [4]]
    assert all(e["ph"] == "X" and e["dur"] >= 0 for e in trace)
    assert "aten::linear" in prof.key_averages().table()


@pytest.mark.parametrize("option", ["profile_memory", "with_stack"])
def test_what_is_not_recorded_refuses(option):
    with pytest.raises(NotImplementedError, match=f"_enable_profiler refused: {option}"):
        profile(**{option: True}).__enter__()
    assert not torch.autograd._profiler_enabled()
