"""Views, writes in place and versions: whose gradient, hooks and tangents change, and which writes are errors."""

import copy
import warnings

import pytest
import torch
import torch.autograd.forward_ad as fw
from torch.autograd import Function

CREATION = torch._C._autograd.CreationMeta


def leaf(*size, dtype=torch.double):
    torch.manual_seed(0)
    return (torch.rand(*size, dtype=dtype) * 0.8 + 0.1).requires_grad_()


# ---- gradients of writes to views, against the same computation without writes -----------------------------------

WRITES = {
    "add": lambda v, w: v.add_(w),
    "mul": lambda v, w: v.mul_(w),
    "div": lambda v, w: v.div_(w),
    "pow": lambda v, w: v.pow_(w),
    "exp": lambda v, w: v.exp_(),
    "log": lambda v, w: v.log_(),
    "sigmoid": lambda v, w: v.sigmoid_(),
    "tanh": lambda v, w: v.tanh_(),
    "sqrt": lambda v, w: v.sqrt_(),
    "reciprocal": lambda v, w: v.reciprocal_(),
    "relu": lambda v, w: v.relu_(),
    "clamp": lambda v, w: v.clamp_(0.3, 0.8),
    "copy": lambda v, w: v.copy_(w),
    "copy broadcast": lambda v, w: v.copy_(w[:1]),
    "fill": lambda v, w: v.fill_(w[0, 0]),
    "zero": lambda v, w: v.zero_(),
    "lerp": lambda v, w: v.lerp_(w, 0.3),
    "addcmul": lambda v, w: v.addcmul_(w, w),
    "masked_fill": lambda v, w: v.masked_fill_(torch.tensor([[True, False], [False, True]]), 3.0),
    "index_put": lambda v, w: v.index_put_((torch.tensor([1, 0]),), w),
    "index_add": lambda v, w: v.index_add_(0, torch.tensor([1, 0]), w),
    "cumsum": lambda v, w: v.cumsum_(0),
    "twice": lambda v, w: v.mul_(w).exp_(),
    "setitem": lambda v, w: v.__setitem__((0, 1), w[1, 1] * v[1, 0].clone()),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("transposed", [False, True])
def test_gradient_of_a_write(write, transposed):
    weights = torch.arange(12.0, dtype=torch.double).view(3, 4)

    def part(t):
        return t.t()[1:3, :2] if transposed else t[:2, 1:3]

    def written(x, w):
        base = x.clone()
        write(part(base), w)
        return base

    def assembled(x, w):
        new = part(x).clone()
        write(new, w)
        new = new.t() if transposed else new
        return torch.cat([torch.cat([x[:2, :1], new, x[:2, 3:]], 1), x[2:]], 0)

    answers = []
    for f in (written, assembled):
        x, w = leaf(3, 4), (leaf(2, 2).detach() + 0.05).requires_grad_()
        out = f(x, w)
        first = torch.autograd.grad(((out * weights) ** 2).sum() + out.sum(), (x, w), create_graph=True, allow_unused=True)
        first = [g for g in first if g is not None]
        total = sum((g**2).sum() for g in first)
        second = [g for g in torch.autograd.grad(total, (x, w), allow_unused=True) if g is not None]
        answers.append([out, *first, *second])
    assert len(answers[0]) == len(answers[1])
    for a, b in zip(*answers, strict=True):
        torch.testing.assert_close(a, b)


def test_other_views_see_a_write():
    x = leaf(4)
    base = x * 1
    front, back = base[:2], base[2:]
    assert front.grad_fn.name() == "SliceBackward0"
    base.mul_(3)
    assert front.grad_fn.name() == "AsStridedBackward0"
    (front.sum() + (back * 2).sum()).backward()
    assert x.grad.tolist() == [3, 3, 6, 6]


def test_a_view_that_repeats_elements_gathers_their_gradient():
    x = leaf(2, 1)
    base = x * 1
    wide = base.expand(2, 3)
    base.mul_(2)
    wide.sum().backward()
    assert x.grad.tolist() == [[6], [6]]


def test_base_and_views_learn_of_a_gradient():
    weight = torch.ones(3, requires_grad=True)
    base = torch.zeros(3)
    view = base[1:]
    assert not view.requires_grad
    base.add_(weight)
    assert view.requires_grad and not view.is_leaf
    (view * 2).sum().backward()
    assert weight.grad.tolist() == [0, 2, 2]

    base = torch.zeros(3)
    view, other = base[1:], base[:2]
    view.add_(weight[1:])
    assert base.requires_grad and other.requires_grad
    assert type(base.grad_fn).__name__ == "CopySlices"

    base = torch.zeros(3)
    view = base[1:]
    base.requires_grad_()
    assert view.requires_grad and view.is_leaf
    base.requires_grad_(False)
    assert not view.requires_grad


def test_view_geometry_changed_in_place_leaves_the_base_alone():
    x = leaf(2, 3)
    base = x * 1
    view = base[:1]
    view.t_()
    assert base.grad_fn.name() == "MulBackward0"
    (view * torch.tensor([[1.0], [2.0], [3.0]], dtype=torch.double)).sum().backward()
    assert x.grad.tolist() == [[1, 2, 3], [0, 0, 0]]


def test_writes_through_complex_views():
    x = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    base = x * 1
    torch.view_as_real(base).mul_(2)
    base.real.add_(1)
    base.conj().mul_(1j)
    assert torch.allclose(base.detach(), -1j * (x.detach() * 2 + 1))
    (base * base.conj()).real.sum().backward()
    assert torch.allclose(x.grad, 4 * (2 * x.detach() + 1))

    plain = torch.tensor([1 + 2j, 3 - 1j])
    plain.conj().sin_()
    assert torch.allclose(plain, torch.tensor([1 + 2j, 3 - 1j]).conj().sin().conj())
    torch.add(torch.ones(2, dtype=torch.cfloat), 1j, out=plain.conj())
    assert plain.tolist() == [1 - 1j, 1 - 1j]


# ---- writes that are errors ---------------------------------------------------------------------------------------


def no_grad_view(x):
    with torch.no_grad():
        return x[0]


def inference_view(x):
    with torch.inference_mode():
        return x[0]


class ViewInside(Function):
    @staticmethod
    def forward(ctx, x):
        return x.view(-1)

    @staticmethod
    def backward(ctx, g):
        return g.view(2, 2)


REFUSED = [
    (
        lambda x: x.unbind()[0],
        "Output 0 of Unbind is a view and is being modified inplace. This view is the output of a function that",
    ),
    (lambda x: x.split(1)[1], "Output 1 of Split is a view and is being"),
    (lambda x: x.unbind()[0][1:], "Output 0 of Slice is a view and is being"),
    (no_grad_view, "A view was created in no_grad mode and is being modified inplace with grad mode enabled"),
    (lambda x: no_grad_view(x.detach()).requires_grad_().view(2), "a view of a view which was created in no_grad mode"),
    (inference_view, "A view was created in inference mode and is being modified inplace in normal mode"),
    (ViewInside.apply, "Output 0 of ViewInside is a view and is being modified inplace. This view was created inside a custom"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_write_that_cannot_be_followed(make, message):
    view = make(leaf(2, 2) * 1)
    with pytest.raises(RuntimeError, match=message):
        view.add_(1)


def test_write_to_the_base_of_such_a_view():
    base = leaf(2, 2) * 1
    first, _ = base.unbind()
    base.add_(1)
    with pytest.raises(RuntimeError, match="Output 0 of Unbind is a view and its base or another view of its base has been"):
        first * 2  # noqa: B018


def test_leaves():
    x = leaf(2)
    with pytest.raises(RuntimeError, match="^a leaf Variable that requires grad is being used in an in-place operation"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="^a view of a leaf Variable that requires grad is being used"):
        x[0] = 1
    with pytest.raises(RuntimeError, match="only change requires_grad flags of leaf variables.$"):
        (x * 1).requires_grad = True
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(x[:1])
    with torch.inference_mode():
        inferred = torch.ones(2)
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor outside InferenceMode"):
        inferred.requires_grad_()


def test_saved_tensor_written_later():
    x = leaf(2)
    y = x * 1
    z = y**2
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"which is output 0 of Add, is at version 1; expected version 0 .*check_nan=False"):
        z.sum().backward()
    y = x.exp()
    y.detach().zero_()
    with pytest.raises(RuntimeError, match="output 0 of Exp, is at version 1"):
        y.sum().backward()


def test_operators_without_derivative():
    base = leaf(2) * 1
    base.heaviside_(torch.ones(2, dtype=torch.double))
    assert type(base.grad_fn).__name__ == "NotImplemented"
    with pytest.raises(RuntimeError, match="derivative for aten::heaviside_ is not implemented"):
        base.sum().backward()
    assert (leaf(2) // 2).requires_grad


# ---- hooks -------------------------------------------------------------------------------------------------------


def test_hooks_stay_with_the_history_and_retained_gradients_move():
    x = leaf(2)
    y = x * 1
    seen = []
    y.register_hook(lambda g: seen.append(("before", g.tolist())))
    y.retain_grad()
    y.mul_(3)
    y.register_hook(lambda g: seen.append(("after", g.tolist())))
    y.sum().backward()
    assert seen == [("after", [1, 1]), ("before", [3, 3])]
    assert y.grad.tolist() == [1, 1] and x.grad.tolist() == [3, 3]


def test_hooks_of_a_base_whose_view_is_written():
    y = leaf(2) * 1
    y.retain_grad()
    first = y[0]
    first.register_hook(lambda g: pytest.fail("the view's old history has no gradient"))
    first.mul_(3)
    y.sum().backward()
    assert y.grad.tolist() == [1, 1]


# ---- versions, and what shares them --------------------------------------------------------------------------------


def test_versions():
    x = torch.zeros(4)
    steps = [
        lambda: x[:2].add_(1),
        lambda: x.zero_(),
        lambda: x.__setitem__(0, 1),
        lambda: x.resize_(4),
        lambda: x.resize_(2, 2),
        lambda: x.resize_as_(torch.ones(3)),
        lambda: x.resize_as_(torch.ones(3)),
        lambda: x.set_(torch.ones(3)),
        lambda: x.unsqueeze_(0),
        lambda: torch.add(x, 1, out=x),
        lambda: x.data.add_(1),
        lambda: x.detach().add_(1),
        lambda: x.detach_(),
        lambda: x.index_put_((torch.tensor([0]),), torch.ones(3)),
        lambda: x.requires_grad_(),
    ]
    counted = []
    for step in steps:
        step()
        counted.append(x._version)
    assert counted == [1, 2, 3, 3, 4, 5, 5, 6, 7, 8, 8, 9, 9, 10, 10]
    torch._C._autograd._unsafe_set_version_counter((x,), (3,))
    assert x._version == 3 and x.view(torch.int32)._version == 3


def test_data():
    x = leaf(3)
    kept = (x * 2).sum()
    x.data = torch.ones(3)
    assert x._version == 0 and x.dtype == torch.float
    (x * 2).sum().backward()
    assert x.grad.dtype == torch.float
    del kept
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        x.data = torch.ones(3, device="meta")
    with pytest.raises(RuntimeError, match="must be floating point or complex"):
        x.data = torch.ones(3, dtype=torch.int)


def test_a_leaf_that_changes_its_shape_gathers_anew():
    x = leaf(4)
    for n in (3, 2):
        with torch.no_grad():
            x.set_(x[1:])
            x.grad = None
        out = torch.cat((x, x)).sum()
        out.backward()
        assert x.grad.tolist() == [2] * n


# ---- functions of the user ------------------------------------------------------------------------------------------


class Doubled(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return g * 2


def test_function_that_writes_its_input():
    x = leaf(3)
    base = x * 1
    out = Doubled.apply(base)
    assert out is base and base._version == 2
    view = base[:1]
    again = Doubled.apply(view)
    assert again is view and type(base.grad_fn).__name__ == "CopySlices"
    (base.sum() + view.sum()).backward()
    assert x.grad.tolist() == [8, 2, 2]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in an in-place operation"):
        Doubled.apply(leaf(2))


def test_function_marks_that_are_errors():
    class Forgets(Doubled):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x * 1

    class Two(Doubled):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2), x + 1

    with pytest.raises(RuntimeError, match="Some elements marked as dirty during the forward method were not returned"):
        Forgets.apply(leaf(2) * 1)
    with pytest.raises(RuntimeError, match="your Function cannot return more than one Tensor"):
        Two.apply((leaf(2) * 1)[:1])


def test_function_that_returns_its_input():
    class Same(Doubled):
        @staticmethod
        def forward(ctx, x):
            return x

    x = leaf(2)
    out = Same.apply(x)
    assert out is not x and out._base is x
    assert torch._C._autograd._get_creation_meta(out) == CREATION.IN_CUSTOM_FUNCTION


def test_creation():
    get = torch._C._autograd._get_creation_meta
    x = torch.ones(2, 2)
    assert get(x[0]) == CREATION.DEFAULT
    assert get(x.unbind()[0]) == get(x.unbind()[0][0]) == CREATION.MULTI_OUTPUT_NODE
    assert get(no_grad_view(x)) == CREATION.NO_GRAD_MODE
    assert get(inference_view(x)) == CREATION.INFERENCE_MODE
    torch._C._autograd._set_creation_meta(view := x[0], CREATION.NO_GRAD_MODE)
    assert get(view) == CREATION.NO_GRAD_MODE


# ---- replay of views -------------------------------------------------------------------------------------------------

VIEWS = [
    lambda x: x[1],
    lambda x: x.t()[1:, 0],
    lambda x: x.chunk(2, 1)[1].transpose(0, 1).unsqueeze(-1),
    lambda x: x.unsqueeze(0).expand(3, 2, 4),
    lambda x: torch.view_as_complex(x.view(2, 2, 2)).conj()[0],
    lambda x: x.unfold(1, 3, 1),
]


@pytest.mark.parametrize("make", VIEWS)
@pytest.mark.parametrize("recorded", [False, True])
def test_replay(make, recorded):
    base, other = torch.rand(2, 4), torch.rand(2, 4)
    with torch.autograd._force_original_view_tracking(recorded):
        view = make(base)
    assert torch.equal(view._view_func(other), make(other))
    assert view._view_func(torch.rand(3)) is None
    if recorded:
        detached = view.detach()
        back = view._rev_view_func_unsafe(detached)
        assert back._base is detached and torch.equal(back, base)


def test_replay_with_other_numbers():
    with torch.autograd._force_original_view_tracking(True):
        view = torch.rand(3, 4).select(1, 2)
    other = torch.rand(3, 4)
    assert torch.equal(view._view_func(other, lambda n: n - 1), other.select(1, 1))
    assert torch.equal(view._view_func(other), other.select(1, 2))
    assert torch.rand(2)._view_func(other) is None


# ---- tangents of views -----------------------------------------------------------------------------------------------


def tangent(t):
    return fw.unpack_dual(t).tangent


def test_views_made_before_their_base_got_a_tangent():
    base = torch.zeros(4)
    view, window = base[:2], base.view(2, 2).t()
    with fw.dual_level():
        base.copy_(fw.make_dual(torch.ones(4), torch.arange(4.0)))
        assert tangent(view).tolist() == [0, 1]
        assert tangent(window).tolist() == [[0, 2], [1, 3]]
        assert tangent(view * 3).tolist() == [0, 3]
        view.mul_(2)
        assert tangent(base).tolist() == [0, 2, 2, 3]
    with fw.dual_level():
        assert tangent(view) is None and tangent(base) is None


def test_write_through_a_view_gives_its_base_a_tangent():
    base = torch.zeros(4)
    front, back = base[:3], base[1:]
    with fw.dual_level():
        front.copy_(fw.make_dual(torch.ones(3), torch.tensor([1.0, 2.0, 3.0])))
        assert tangent(base).tolist() == [1, 2, 3, 0]
        assert tangent(back).tolist() == [2, 3, 0]


def test_tangents_of_marked_views():
    base = torch.zeros(2, dtype=torch.cfloat)
    real, conj = torch.view_as_real(base), base.conj()
    with fw.dual_level():
        base.copy_(fw.make_dual(torch.ones(2, dtype=torch.cfloat), torch.tensor([1 + 2j, 3j])))
        assert tangent(real).tolist() == [[1, 2], [0, 3]]
        assert tangent(conj).tolist() == [1 - 2j, -3j]


def test_primal_has_no_tangent_of_its_base():
    with fw.dual_level():
        dual = fw.make_dual(torch.ones(2), torch.ones(2))
        primal = fw.unpack_dual(dual).primal
        assert primal._is_view() and tangent(primal) is None and tangent(primal[0]) is None
        assert tangent(dual.detach()) is None


def test_tangent_lies_as_its_primal():
    primal = torch.randn(5)[:4].detach()
    own = torch.randn(4)
    with fw.dual_level():
        dual = fw.make_dual(primal, own)
        assert tangent(dual).untyped_storage().nbytes() == 20 and torch.equal(tangent(dual), own)
        assert tangent(dual.as_strided((5,), (1,), 0))[4] == 0
        same = torch.randn(4)
        assert tangent(fw.make_dual(torch.randn(4), same)) is same


def test_batch_of_gradients_through_writes():
    a, b, go = leaf(4, 4), leaf(2, 2), leaf(4, 4)
    x = a.clone()
    x[1:3, 2:].mul_(b)
    first = torch.autograd.grad(x, (a, b), go, create_graph=True)
    for out in first:
        one = torch.autograd.grad(out, go, torch.ones_like(out), retain_graph=True)[0]
        batch = torch.stack([torch.ones_like(out), torch.ones_like(out) * 2])
        many = torch.autograd.grad(out, go, batch, retain_graph=True, is_grads_batched=True)[0]
        torch.testing.assert_close(many, torch.stack([one, one * 2]))


def test_no_warning_where_nothing_is_wrong():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = leaf(4)
        y = x * 1
        y[:2] = y[2:] * 2
        y.sum().backward()
    assert x.grad.tolist() == [0, 0, 3, 3]


def test_no_warning_where_a_real_number_became_complex():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = leaf(3)
        x.to(torch.cdouble).sum().abs().backward()
    assert x.grad.tolist() == [1, 1, 1]


def test_batched_gradients_that_meet_plain_ones():
    x, go = leaf(3), leaf(3)
    (first,) = torch.autograd.grad((x**2) + (x**3) + x.exp(), x, go, create_graph=True)
    total = (first * x).sum() + (first**2).sum()
    batch = torch.tensor([1.0, 2.0], dtype=torch.double)
    many = torch.autograd.grad(total, x, batch, retain_graph=True, is_grads_batched=True)[0]
    one = torch.autograd.grad(total, x)[0]
    torch.testing.assert_close(many, torch.stack([one, one * 2]))
