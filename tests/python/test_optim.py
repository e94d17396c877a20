"""Optimisers, operators over lists and gradient scaling through the public API; upstream's parameters are in tests/data."""

import copy
import functools
import json
import math
import warnings
from pathlib import Path

import optimisers
import pytest
import torch
from tolerance import excess

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "optimisers.json").read_text())
CASES = [(name, form) for name, row in RECORDED.items() for form in row["forms"]]


@functools.cache
def configurations():
    return {(name, form): (cls, kwargs) for name, form, cls, kwargs in optimisers.cases()}


def problem(case, dtype=torch.float32):
    cls, kwargs = configurations()[case]
    return optimisers.Problem(cls, copy.deepcopy(kwargs), dtype)


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_every_configuration_of_upstream_is_recorded():
    assert set(configurations()) == set(CASES)


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_twenty_steps_give_upstreams_parameters(case):
    row = RECORDED[case[0]]
    assert excess(problem(case).run(), row["narrow"], row["wide"]) <= 1


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_a_saved_state_resumes_to_the_same_bits(case):
    whole, first, second = problem(case), problem(case), problem(case)
    whole.run(8)
    first.run(4)
    second.load(first.save())
    assert second.run(4) == whole.run(0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("cls", [torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD, torch.optim.Adagrad])
def test_fused_steps_of_other_dtypes_go_with_the_single_ones(cls, dtype):
    kwargs = {"lr": 0.05} | ({"momentum": 0.9, "nesterov": True} if cls is torch.optim.SGD else {})
    single, fused = optimisers.Problem(cls, kwargs, dtype), optimisers.Problem(cls, kwargs | {"fused": True}, dtype)
    near = {torch.float64: 1e-12, torch.bfloat16: 0.06, torch.float16: 0.006}[dtype]
    assert fused.run(5) == pytest.approx(single.run(5), abs=near)


def test_fused_step_works_on_other_strides():
    param, grad = torch.ones(3, 4, requires_grad=True), torch.arange(12.0).view(4, 3).t()
    param.grad = grad
    torch.optim.SGD([param], lr=0.5, fused=True).step()
    assert param.tolist() == (1 - 0.5 * grad).tolist()


def test_fused_step_leaves_out_infinite_gradients_and_unscales():
    def step(found, scale):
        p = torch.ones(5, requires_grad=True)
        p.grad = torch.full((5,), 8.0)
        optimiser = torch.optim.SGD([p], lr=0.25, fused=True)
        optimiser.grad_scale, optimiser.found_inf = torch.tensor(scale), torch.tensor(found)
        optimiser.step()
        return p.tolist(), p.grad.tolist()

    assert step(1.0, 4.0) == ([1.0] * 5, [8.0] * 5)
    assert step(0.0, 4.0) == ([0.5] * 5, [2.0] * 5)


def test_sparse_adam_refuses_by_name():
    p = torch.nn.Parameter(torch.ones(3))
    with pytest.raises(NotImplementedError, match="to_sparse"):
        p.grad = torch.ones(3).to_sparse()
    p.grad = torch.ones(3)
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients"):
        torch.optim.SparseAdam([p]).step()


# ---- operators over lists ----------------------------------------------------------------------------------------------


def lists(*shapes, dtype=torch.float32):
    torch.manual_seed(1)
    return [torch.rand(s).add(0.5).to(dtype) for s in shapes]


SHAPES = [(3, 5), (), (7,), (0,), (2, 3, 4), (300, 257)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int32])
def test_lists_equal_their_elements(dtype):
    a, b, c = lists(*SHAPES, dtype=dtype), lists(*SHAPES, dtype=dtype), lists(*SHAPES, dtype=dtype)
    divisors = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    pairs = [
        (torch._foreach_add(a, b, alpha=2), [torch.add(x, y, alpha=2) for x, y in zip(a, b, strict=True)]),
        (torch._foreach_mul(a, 3), [x * 3 for x in a]),
        (
            torch._foreach_div(a, divisors),
            [x / s for x, s in zip(a, divisors, strict=True)],
        ),
        (torch._foreach_sub(a, b), [x - y for x, y in zip(a, b, strict=True)]),
        (torch._foreach_maximum(a, 1), [x.clamp_min(1) for x in a]),
        (torch._foreach_addcmul(a, b, c, value=3), [torch.addcmul(x, y, z, value=3) for x, y, z in zip(a, b, c, strict=True)]),
        (torch._foreach_sqrt(a), [x.sqrt() for x in a]),
        (torch._foreach_pow(a, 2), [x**2 for x in a]),
        (torch._foreach_add(a, torch.tensor(2)), [x + 2 for x in a]),
    ]
    for found, expected in pairs:
        assert len(found) == len(expected)
        for x, y in zip(found, expected, strict=True):
            assert x.dtype == y.dtype
            assert torch.equal(x, y)


def test_lists_in_place_bump_versions_once_and_give_the_list_back():
    a = lists((3,), (2, 2))
    before = [x._version for x in a]
    assert torch._foreach_mul_(a, 2.0) is a
    assert [x._version for x in a] == [v + 1 for v in before]
    a[0].requires_grad_()
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        torch._foreach_add_(a, 1.0)


def test_order_matters_where_elements_share_memory():
    base = torch.ones(40000)
    torch._foreach_add_([base, base], [base, base])
    assert base[0] == 4
    torch._foreach_mul_([base[:20000], base[20000:], base], 0.5)
    assert base.unique().tolist() == [1.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: torch._foreach_add([], 1), "Tensor list must have at least one tensor."),
        (lambda t: torch._foreach_add([t], [t, t]), "Tensor lists must have the same number of tensors, got 1 and 2"),
        (lambda t: torch._foreach_mul([t], [1.0, 2.0]), "Tensor list must have same number of elements as scalar list."),
        (
            lambda t: torch._foreach_mul([t], torch.ones(1)),
            "scalar tensor expected to be 0 dim but it has 1 dimensions and 1 elements.",
        ),
        (
            lambda t: torch._foreach_norm([torch.ones(0)], math.inf),
            "_foreach_norm cannot compute the infinity norm on an empty tensor",
        ),
        (lambda t: torch._foreach_max([torch.ones(0)]), "_foreach_max cannot compute the maximum of an empty tensor"),
    ],
)
def test_errors_of_lists(call, message):
    with pytest.raises(RuntimeError) as error:
        call(torch.ones(2))
    assert message in str(error.value)


def test_gradients_go_through_lists():
    a = [x.requires_grad_() for x in lists((3,), (2, 2))]
    scaled = torch._foreach_mul(a, [2.0, 3.0])
    torch._foreach_exp_(scaled)
    sum(x.sum() for x in torch._foreach_addcmul(scaled, scaled, scaled)).backward()
    for x, s in zip(a, (2.0, 3.0), strict=True):
        e = (x.detach() * s).exp()
        assert torch.allclose(x.grad, s * (e + 2 * e * e))


def test_results_of_lists_share_upstreams_node():
    a, b, shared = torch.ones(2, requires_grad=True), torch.ones(3), torch.tensor(2.0, requires_grad=True)
    names = {
        "ForeachAddBackward1Scalar": torch._foreach_add([a, b], 1.0),
        "ForeachDivBackward0": torch._foreach_div([a, b], [b[:2], b]),
        "ForeachPowBackward2": torch._foreach_pow(2.0, [a, b]),
        "ForeachNormBackward0": torch._foreach_norm([a, b]),
    }
    for name, results in names.items():
        assert [x.grad_fn.name() for x in results] == [name, name]
        assert results[0].grad_fn is results[1].grad_fn
    product = torch._foreach_mul([a, b], shared)
    (first, total) = torch.autograd.grad(sum(x.sum() for x in product), (a, shared))
    assert (first.tolist(), total.item()) == ([2.0, 2.0], 5.0)
    x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([1.5], dtype=torch.float64, requires_grad=True)
    for call in (
        lambda p, q: torch._foreach_sqrt([p, q]),
        lambda p, q: torch._foreach_mul([p, q], [p, q]),
        lambda p, q: torch._foreach_norm([p, q]),
    ):
        assert torch.autograd.gradcheck(call, (x, y))
        assert torch.autograd.gradgradcheck(call, (x, y))


def test_groups_by_device_and_dtype():
    group = torch._C._group_tensors_by_device_and_dtype
    a, b = torch.ones(2), torch.ones(2, dtype=torch.float64)
    step = torch.tensor(1.0)
    found = group([[a, b, a], [step, step, step], []], True)
    assert list(found) == [(torch.device("cpu"), torch.float32), (torch.device("cpu"), torch.float64)]
    (params, steps, nothing), indices = found[torch.device("cpu"), torch.float32]
    assert params[0] is a and params[1] is a and steps == [step, step] and nothing == [] and indices == [0, 2]
    with pytest.raises(RuntimeError, match="Tensors of the same index must be on the same device and the same dtype"):
        group([[a], [torch.ones(2, dtype=torch.int64)]])


@pytest.mark.parametrize("foreach", [True, False])
def test_clipping(foreach):
    params = [torch.nn.Parameter(torch.zeros(n)) for n in (3, 4)]
    for p in params:
        p.grad = torch.full_like(p, 2.0)
    assert torch.nn.utils.clip_grad_norm_(params, 1.0, foreach=foreach).item() == pytest.approx(math.sqrt(28))
    assert sum(float((p.grad**2).sum()) for p in params) == pytest.approx(1.0, rel=1e-5)
    torch.nn.utils.clip_grad_value_(params, 0.1, foreach=foreach)
    assert max(float(p.grad.max()) for p in params) == pytest.approx(0.1)


# ---- gradient scaling ---------------------------------------------------------------------------------------------------


def test_scaler_skips_a_step_with_infinite_gradients_and_backs_off():
    p = torch.nn.Parameter(torch.ones(3))
    optimiser, scaler = torch.optim.SGD([p], lr=0.5), torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    history = []
    for factor in (1.0, math.inf, 1.0, 1.0):
        optimiser.zero_grad()
        scaler.scale((p * factor).sum()).backward()
        scaler.step(optimiser)
        scaler.update()
        history.append((p[0].item(), scaler.get_scale()))
    assert history == [(0.5, 8.0), (0.5, 4.0), (0.0, 4.0), (-0.5, 8.0)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_unscale_finds_one_bad_value_anywhere(dtype):
    for where in range(19):
        for bad in (math.inf, -math.inf, math.nan):
            grads, found = [torch.ones(5, dtype=dtype), torch.full((19,), 4.0, dtype=dtype)], torch.zeros(1)
            torch._amp_foreach_non_finite_check_and_unscale_(grads, found, torch.tensor(0.25))
            assert found.item() == 0 and grads[1].tolist() == [1.0] * 19
            grads[1][where] = bad
            torch._amp_foreach_non_finite_check_and_unscale_(grads, found, torch.tensor(1.0))
            assert found.item() == 1


def test_averaged_model_and_schedule():
    model = torch.nn.Linear(2, 2)
    averaged = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.5))
    averaged.update_parameters(model)
    first = model.weight.detach().clone()
    with torch.no_grad():
        model.weight.add_(2.0)
    averaged.update_parameters(model)
    assert torch.allclose(averaged.module.weight, first + 1.0)
    optimiser = torch.optim.SGD(model.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=4)
    rates = []
    for _ in range(4):
        optimiser.step()
        scheduler.step()
        rates.append(scheduler.get_last_lr()[0])
    assert rates == pytest.approx([0.5 * (1 + math.cos(math.pi * k / 4)) for k in range(1, 5)], abs=1e-12)


def test_classes_of_nodes_outlive_their_nodes():
    x = torch.ones(2, requires_grad=True)
    for _ in range(50):
        assert type((x * 2).grad_fn).__name__ == "MulBackward0"


def test_lists_into_given_tensors():
    a, out = [torch.ones(2), torch.full((3,), 4.0)], [torch.empty(2), torch.empty(3)]
    assert torch.ops.aten._foreach_mul.Scalar_out(a, 2.0, out=out) is None
    assert [x.tolist() for x in out] == [[2.0, 2.0], [8.0, 8.0, 8.0]]
    with pytest.raises(RuntimeError, match="expected 2 tensors in out, got 1"):
        torch.ops.aten._foreach_sqrt.out(a, out=out[:1])
    zeros = torch.ops.aten._foreach_zero(a)
    assert [x.tolist() for x in zeros] == [[0.0] * 2, [0.0] * 3]
    scale, tracker = torch.ops.aten._amp_update_scale(
        torch.tensor(4.0), torch.tensor(1, dtype=torch.int32), torch.tensor(0.0), 2.0, 0.5, 2
    )
    assert (scale.item(), tracker.item()) == (8.0, 0)
