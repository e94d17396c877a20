"""The backward engine: the order in which hooks run, what they may ask and change, errors, threads, anomaly mode, and
that nothing stays alive. What is asserted is upstream's behaviour."""

import gc
import re
import threading
import warnings
import weakref

import pytest
import torch
from torch.autograd import Function, forward_ad, grad


def leaf(*values):
    return torch.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


def message(error, f, *args, **kwargs):
    with pytest.raises(error) as info:
        f(*args, **kwargs)
    return str(info.value)


class Double(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


# ---- hooks ---------------------------------------------------------------------------------------------------------


def test_hooks_run_in_upstreams_order():
    log = []
    x = leaf()
    y = x * 2
    z = y.exp()
    y.register_hook(lambda g: log.append("tensor 1"))
    y.register_hook(lambda g: log.append("tensor 2"))
    y.grad_fn.register_prehook(lambda g: log.append(("before", len(g))))
    y.grad_fn.register_hook(lambda i, o: log.append(("after", len(i), len(o))))
    z.grad_fn.register_hook(lambda i, o: log.append("exp"))
    x.register_hook(lambda g: log.append("leaf"))
    accumulator = x.view_as(x).grad_fn.next_functions[0][0]
    accumulator.register_prehook(lambda g: log.append("before leaf"))
    accumulator.register_hook(lambda i, o: log.append(("after leaf", i, len(o))))
    x.register_post_accumulate_grad_hook(lambda t: log.append("accumulated"))
    z.sum().backward()
    expected = ["exp", "tensor 1", "tensor 2", ("before", 1), ("after", 2, 1), "leaf", "before leaf", "accumulated"]
    assert log == [*expected, ("after leaf", (), 1)]
    log.clear()
    grad((x * 2).sum(), x)
    assert log == ["leaf"]  # read, not accumulated


def test_hooks_replace_gradients():
    x = leaf()
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: g + 1)
    y.retain_grad()
    y.grad_fn.register_prehook(lambda g: (g[0] * 2,))
    y.sum().backward()
    assert y.grad.tolist() == [11.0] * 3
    assert x.grad.tolist() == [44.0] * 3


@pytest.mark.parametrize(
    ("register", "answer", "error", "text"),
    [
        ("tensor", lambda g: torch.ones(2), RuntimeError, "hook '<lambda>' has changed the size of value"),
        ("tensor", lambda g: g.double(), RuntimeError, "(was torch.FloatTensor got torch.DoubleTensor)"),
        ("tensor", lambda g: 3, TypeError, "expected Variable, but hook returned 'int'"),
        ("before", lambda g: g[0], TypeError, "expected tuple, but hook returned 'Tensor'"),
        ("after", lambda i, o: (i[0],) * 3, RuntimeError, "incorrect number of values (got 3, but expected 2)"),
        ("after", lambda i, o: (i[0], i[0]), RuntimeError, "can't replace a None gradient with a non-None value"),
    ],
)
def test_wrong_answers_of_hooks(register, answer, error, text):
    y = leaf() * 2
    {"tensor": y.register_hook, "before": y.grad_fn.register_prehook, "after": y.grad_fn.register_hook}[register](answer)
    assert text in message(error, y.sum().backward)


def test_hooks_see_undefined_gradients_as_none():
    seen = []
    a, b, _ = leaf().unbind()
    a.register_hook(seen.append)
    b.backward()
    assert seen == [None]


def test_what_a_hook_switches_ends_with_its_node():
    seen = []
    y, z = leaf() * 1, leaf()
    y.register_hook(lambda g: torch.set_grad_enabled(True) and None)
    z.register_hook(lambda g: seen.append(torch.is_grad_enabled()))
    (y * z.exp()).sum().backward()
    assert seen == [False]


def test_hooks_ask_for_the_state_of_the_run():
    seen = []
    x = leaf()
    y = x.exp()
    z = y.sin()

    def hook(_):
        seen.append(torch._C._current_graph_task_id())
        assert torch._C._current_autograd_node() is z.grad_fn
        assert torch._C._will_engine_execute_node(y.grad_fn)
        assert torch._C._autograd._get_current_graph_task_keep_graph()

    z.register_hook(hook)
    z.sum().backward(retain_graph=True)
    z.sum().backward(retain_graph=True)
    assert seen[1] == seen[0] + 1
    assert torch._C._current_graph_task_id() == -1
    assert torch._C._current_autograd_node() is None
    assert "during the backward pass" in message(RuntimeError, torch._C._will_engine_execute_node, y.grad_fn)


# ---- what is asked for ---------------------------------------------------------------------------------------------


def test_backward_accumulates_into_results():
    x, y = leaf(), leaf(4.0, 5.0, 6.0)
    w = x * y
    out = (w * w).sum()
    out.backward(inputs=[w], retain_graph=True)
    assert w.retains_grad and w.grad.tolist() == [8.0, 20.0, 36.0]
    assert x.grad is None
    out.backward(inputs=[x, w])
    assert w.grad.tolist() == [16.0, 40.0, 72.0] and x.grad.tolist() == [32.0, 100.0, 216.0]
    assert y.grad is None


def test_roots_and_gradients_must_fit():
    x = leaf()
    run = torch._C._ImperativeEngine().run_backward
    one = torch.tensor(1.0)
    assert "tensors tuple is neither a Tensor" in message(RuntimeError, run, (3,), (None,), False, False)
    assert "is None, but the corresponding" in message(RuntimeError, run, (x.sum(),), (None,), False, False)
    assert message(RuntimeError, run, (x * 2,), (torch.ones(2),), False, False) == (
        "invalid gradient at index 0 - got [2] but expected shape compatible with [3]"
    )
    assert "does not require grad" in message(
        RuntimeError, run, (x.sum(),), (one,), False, False, (torch.ones(2),), True, False
    )


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (lambda g: torch.ones(2), "Function FBackward returned an invalid gradient at index 0 - got [2] but expected"),
        (lambda g: g.to(torch.complex64), "expected a real gradient at index 0, got ComplexFloat"),
        (lambda g: (g, g), "function FBackward returned an incorrect number of gradients (expected 1, got 2)"),
        (lambda g: 3, "expected Variable or None (got int)"),
    ],
)
def test_wrong_gradients_of_functions(answer, text):
    class F(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return answer(g)

    assert text in message(RuntimeError, F.apply(leaf()).sum().backward)


def test_gradients_are_summed_and_cast_to_fit():
    class F(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return torch.ones(2, 3, dtype=torch.int64)

    x = leaf()
    F.apply(x).sum().backward()
    assert x.grad.dtype == torch.float32 and x.grad.tolist() == [2.0] * 3


# ---- anomaly mode --------------------------------------------------------------------------------------------------


def test_anomaly_mode_names_the_forward_call():
    x = leaf()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly():
            y = (x * 0).sqrt() * 0
            assert "'SqrtBackward0' returned nan values in its 0th output" in message(RuntimeError, y.sum().backward)
    text = str(caught[1].message)
    assert "Error detected in SqrtBackward0. Traceback of forward call" in text and "(x * 0).sqrt()" in text
    assert "traceback_" in y.grad_fn.metadata


def test_anomaly_mode_names_what_induced_a_call():
    class Outer(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sum()

        @staticmethod
        def backward(ctx, g):
            return Inner.apply(g * ctx.saved_tensors[0])

    class Inner(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise ValueError("inner")

    x = leaf()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly(check_nan=False):
            (g,) = grad(Outer.apply(x), x, create_graph=True)
            assert message(ValueError, g.sum().backward) == "inner"
    texts = [str(w.message) for w in caught]
    assert any("Error detected in InnerBackward" in t for t in texts)
    assert any("induced by OuterBackward" in t and "Outer.apply" in t for t in texts)


# ---- forward mode of functions -------------------------------------------------------------------------------------


def forward_function(jvp, forward=lambda ctx, x, y: x * y):
    return type("F", (Function,), {"forward": staticmethod(forward), "jvp": staticmethod(jvp)})


def tangent_of(function):
    with forward_ad.dual_level():
        x = forward_ad.make_dual(torch.tensor([1.0, 2.0]), torch.ones(2))
        return forward_ad.unpack_dual(function.apply(x, torch.tensor([3.0, 4.0]))).tangent


def test_functions_have_tangents():
    given = []
    function = forward_function(lambda ctx, a, b: given.append(b) or a * 5)
    assert tangent_of(function).tolist() == [5.0, 5.0]
    assert given[0].tolist() == [0.0, 0.0]
    saves = forward_function(lambda ctx, a, b: a * ctx.saved_tensors[0], lambda ctx, x, y: ctx.save_for_forward(y) or x * y)
    assert tangent_of(saves).tolist() == [3.0, 4.0]
    written = forward_function(lambda ctx, a, b: a.mul_(2), lambda ctx, x, y: ctx.mark_dirty(x) or x.mul_(2))
    assert tangent_of(written).tolist() == [2.0, 2.0]
    view = forward_function(lambda ctx, a, b: a.view(-1), lambda ctx, x, y: x.view(-1))
    assert tangent_of(view).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("jvp", "forward", "text"),
    [
        (lambda ctx, a, b: (a, a), None, "an invalid number of forward gradients (expected 1 but got 2)"),
        (lambda ctx, a, b: 3, None, "expected Variable or None (got int) for grad output 0."),
        (lambda ctx, a, b: torch.ones(3), None, "Tensor is of size [2] while the given forward gradient is of size [3]"),
        (lambda ctx, a, b: a * 1, lambda ctx, x, y: x.view(-1), "but the jvp is not returning a view"),
        (
            lambda ctx, a, b: a * 2,
            lambda ctx, x, y: ctx.mark_dirty(x) or x.mul_(2),
            "is not modifying the forward mode gradients inplace",
        ),
        (
            lambda ctx, a, b: a,
            lambda ctx, x, y: (lambda o: ctx.mark_non_differentiable(o) or o)(x * 1),
            "You should return None at that position instead",
        ),
    ],
)
def test_wrong_tangents_of_functions(jvp, forward, text):
    function = forward_function(jvp, forward) if forward else forward_function(jvp)
    assert text in message(RuntimeError, tangent_of, function)


# ---- threads, depth, lifetimes -------------------------------------------------------------------------------------


def in_threads(count, body):
    failures = []

    def run():
        try:
            body()
        except RuntimeError as e:
            failures.append(str(e))

    threads = [threading.Thread(target=run) for _ in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return failures


def test_threads_share_a_graph():
    x = leaf()
    y = (x.exp() * x).sum()
    assert in_threads(8, lambda: y.backward(retain_graph=True)) == []
    torch.testing.assert_close(x.grad, 8 * (x.exp() * (1 + x)).detach())


def test_a_graph_is_freed_once_between_threads():
    for _ in range(30):
        x = torch.linspace(0, 1, 50, requires_grad=True)
        z = (x.sin().cos() * x.exp()).sum()
        for failure in in_threads(3, z.backward):
            assert failure.startswith("Trying to backward through the graph a second time")


def test_runs_nest():
    class Nested(Function):
        @staticmethod
        def forward(ctx, x, depth):
            with torch.enable_grad():
                ctx.x = x.detach().requires_grad_()
                ctx.y = (ctx.x * 2 if depth == 0 else Nested.apply(ctx.x, depth - 1)).sum()
            return ctx.y.detach()

        @staticmethod
        def backward(ctx, g):
            ids.append(torch._C._current_graph_task_id())
            ctx.y.backward()
            return ctx.x.grad * g, None

    ids = []
    x = leaf()
    Nested.apply(x, 20).backward()
    assert x.grad.tolist() == [2.0] * 3
    assert ids == list(range(ids[0], ids[0] + 21))


def test_deep_nests_leave_the_stack():
    class Countdown(Function):
        @staticmethod
        def forward(ctx, x):
            with torch.enable_grad():
                ctx.x = x.detach().requires_grad_() - 1
            return ctx.x.detach()

        @staticmethod
        def backward(ctx, g):
            if ctx.x.item() == -1:
                raise ValueError("end")
            if ctx.x > 0:
                with torch.enable_grad():
                    Countdown.apply(ctx.x).sum().backward()
            return g

    Countdown.apply(leaf(500.0)).sum().backward()
    assert message(ValueError, Countdown.apply(leaf(0.0)).sum().backward) == "end"
    inner = Countdown.apply(leaf(99.5)).sum()  # ends at -0.5 on another thread
    inner.backward()


def test_tangents_are_batched_in_the_older_vmap():
    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    found = torch.autograd.functional.hessian(lambda y: (y**3).sum(), x, outer_jacobian_strategy="forward-mode", vectorize=True)
    torch.testing.assert_close(found, torch.diag(6 * x))


def test_create_graph_warns_of_the_cycle():
    x = leaf()
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="create_graph=True will create a reference cycle"):
            (x * x).sum().backward(create_graph=True)
    finally:
        torch.set_warn_always(False)
        x.grad = None


def test_deep_graphs():
    x = leaf(1.0)
    y = x
    for _ in range(50_000):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1.0
    y = x
    for _ in range(5_000):
        y = Double.apply(y) * 0.5
    y.backward()
    assert x.grad.item() == 2.0


def kept_alive(build):
    class Sentinel:
        pass

    sentinel = Sentinel()
    watch = weakref.ref(sentinel)
    gc.disable()
    try:
        build(sentinel)
        del sentinel
        gc.collect()
        return watch() is not None
    finally:
        gc.enable()


def cycle_of_node_hook(s):
    fn = leaf().clone().grad_fn
    fn.register_hook(lambda i, o, fn=fn, s=s: None)


def cycle_of_tensor_hook(s):
    y = leaf().clone()
    y.register_hook(lambda g, fn=y.grad_fn, s=s: None)


def cycle_of_tensor_in_its_hook(s):
    y = leaf().clone()
    y.register_hook(lambda g, y=y, s=s: None)


def cycle_of_context(s):
    y = Double.apply(leaf())
    y.grad_fn.out, y.grad_fn.s = y, s


def cycle_of_leaf_hook(s):
    x = leaf()
    x.register_hook(lambda g, x=x, s=s: None)


def cycle_of_metadata(s):
    fn = leaf().exp().grad_fn
    fn.metadata["s"], fn.metadata["fn"] = s, fn


@pytest.mark.parametrize(
    "build",
    [
        cycle_of_node_hook,
        cycle_of_tensor_hook,
        cycle_of_tensor_in_its_hook,
        cycle_of_context,
        cycle_of_leaf_hook,
        cycle_of_metadata,
    ],
)
def test_cycles_are_collected(build):
    assert not kept_alive(build)


def test_hooks_outlive_a_collection():
    count = []
    y = leaf().clone()
    y.grad_fn.register_hook(lambda i, o, fn=y.grad_fn: count.append(1))
    out = (y * 2).sum()
    del y
    gc.collect()
    out.backward()
    assert count == [1]


def test_steps_leave_nothing_behind():
    x = torch.ones(8, requires_grad=True)

    def step():
        y = Double.apply(x) * x
        y.register_hook(lambda g: g * 1)
        y.grad_fn.register_hook(lambda i, o: None)
        y.sum().backward()
        x.grad = None

    for _ in range(20):
        step()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(300):
        step()
    gc.collect()
    assert len(gc.get_objects()) - before < 10


def test_weak_references_follow_the_header():
    x = torch.ones(2)
    weak = torch._C._WeakTensorRef(x)
    view = x[:1]
    del x
    assert not weak.expired()  # the view's base
    del view
    assert weak.expired()


# ---- names and attributes ------------------------------------------------------------------------------------------


def test_names_of_nodes():
    x = leaf()
    accumulator = x.view_as(x).grad_fn.next_functions[0][0]
    assert accumulator.name() == "torch::autograd::AccumulateGrad"
    assert re.fullmatch("<AccumulateGrad object at 0x[0-9a-f]+>", repr(accumulator))
    fn = x.exp().grad_fn
    assert type(fn).__mro__[1:] == (object,) and isinstance(fn, torch.autograd.graph.Node)
    assert repr(type(fn)) == "<class 'ExpBackward0'>"
    (value,) = fn._input_metadata
    assert value.shape == [3] and value.dtype == torch.float32 and value.device == torch.device("cpu")
    assert "expected 1 arguments, got 0 instead" in message(TypeError, fn)
    assert "cannot create 'ExpBackward0' instances" in message(TypeError, type(fn))


def test_contexts_after_the_graph():
    x = leaf()
    y = Double.apply(x)
    assert y.grad_fn.saved_tensors[0] is x and len(y.grad_fn._raw_saved_tensors) == 1
    with pytest.warns(DeprecationWarning, match="'saved_variables' is deprecated"):
        _ = y.grad_fn.saved_variables
    y.sum().backward()
    assert "already been freed" in message(RuntimeError, lambda: y.grad_fn.saved_tensors)
    assert "already been freed" in message(RuntimeError, lambda: y.grad_fn._raw_saved_tensors)


def test_grad_fn_can_only_be_dropped():
    y = leaf() * 2
    assert "Deletion of _grad_fn not allowed" in message(RuntimeError, delattr, y, "_grad_fn")
    assert "can be only set to None" in message(RuntimeError, setattr, y, "_grad_fn", 3)
    y._grad_fn = None
    assert y.grad_fn is None and not y.requires_grad
