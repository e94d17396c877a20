"""Forward mode: tangents against reverse mode and finite differences; the rules of dual levels."""

import pytest
import torch
import torch.autograd.forward_ad as fw
import torch.nn.functional as F


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def push(f, *pairs):
    with fw.dual_level():
        return fw.unpack_dual(f(*(fw.make_dual(p, t) for p, t in pairs)))


FUNCTIONS = [
    torch.sin,
    torch.exp,
    torch.erf,
    torch.sigmoid,
    torch.tanh,
    torch.log1p,
    torch.sqrt,
    torch.reciprocal,
    lambda x: x**3,
    lambda x: 2.0**x,
    lambda x: x * x.flip(0),
    lambda x: x / (1 + x),
    lambda x: torch.atan2(x, x.t()),
    lambda x: x.sum(),
    lambda x: x.mean(0),
    lambda x: x.prod(),
    lambda x: x.prod(1),
    lambda x: x.var(),
    lambda x: x.std(1),
    lambda x: x.norm(),
    lambda x: x.norm(3, 1),
    lambda x: torch.linalg.vector_norm(x, dim=0),
    lambda x: x.logsumexp(1),
    lambda x: x.softmax(-1),
    lambda x: x.log_softmax(0),
    lambda x: x.cumsum(0),
    lambda x: x.cumprod(1),
    lambda x: x.logcumsumexp(0),
    lambda x: x.max(),
    lambda x: x.max(1).values,
    lambda x: x.amin(0),
    lambda x: x.sort(0).values,
    lambda x: x.topk(2).values,
    lambda x: x.clamp(0.3, 0.7),
    lambda x: torch.clamp(x, x.mean() - 0.2, x.mean() + 0.2),
    lambda x: x @ x,
    lambda x: torch.addmm(x, x, x),
    lambda x: x.mv(x[0]),
    lambda x: torch.einsum("ij,kj->ik", x, x),
    lambda x: F.linear(x, x, x[0]),
    lambda x: F.layer_norm(x, (4,), x[0], x[1]),
    lambda x: F.group_norm(x.view(2, 2, 4), 2),
    lambda x: F.batch_norm(x, None, None, x[0], x[1], training=True),
    lambda x: F.gelu(x),
    lambda x: F.silu(x),
    lambda x: F.relu(x - 0.5),
    lambda x: F.mse_loss(x, x.t()),
    lambda x: F.smooth_l1_loss(x, torch.full_like(x, 0.5)),
    lambda x: F.cross_entropy(x, torch.tensor([0, 1, 2, 3])),
    lambda x: torch.where(x > 0.5, x, x.t()),
    lambda x: x.masked_fill(x > 0.5, 0.0),
    lambda x: torch.cat([x, x.t()], 1),
    lambda x: torch.stack([x, 2 * x]),
    lambda x: x[1:, ::2],
    lambda x: x[torch.tensor([0, 2, 2])],
    lambda x: x.gather(0, torch.tensor([[0, 1, 2, 3]])),
    lambda x: x.view(2, 8).t().reshape(-1),
    lambda x: x.split(2)[1],
    lambda x: x.unbind(1)[2],
    lambda x: x.diagonal(),
    lambda x: x.expand(3, 4, 4),
    lambda x: x.tril(),
    lambda x: torch.complex(x, x.t()).abs(),
    lambda x: x.clone().mul_(x).add_(1),
    lambda x: x.clone().sin_().exp_(),
]


@pytest.mark.parametrize("f", FUNCTIONS, ids=range(len(FUNCTIONS)))
def test_tangent_is_the_directional_derivative(f):
    x = torch.rand(4, 4, dtype=torch.double) * 0.8 + 0.1
    v = torch.randn(4, 4, dtype=torch.double)
    value, tangent = push(f, (x, v))
    torch.testing.assert_close(value, f(x))
    h = 1e-6
    torch.testing.assert_close(tangent, (f(x + h * v) - f(x - h * v)) / (2 * h), rtol=1e-6, atol=1e-7)
    # The same by reverse mode: <u, Jv> = <J^T u, v>.
    leaf = x.clone().requires_grad_()
    out = f(leaf)
    u = torch.randn_like(out)
    (g,) = torch.autograd.grad(out, leaf, u)
    torch.testing.assert_close((u * tangent).sum(), (g * v).sum())


def test_two_inputs_and_one_without_tangent():
    x, y, v, w = torch.rand(4, 3, dtype=torch.double)
    _, t = push(lambda a, b: a * b.exp(), (x, v), (y, w))
    torch.testing.assert_close(t, v * y.exp() + x * y.exp() * w)
    with fw.dual_level():
        t = fw.unpack_dual(fw.make_dual(x, v) * y).tangent
        torch.testing.assert_close(t, v * y)
        assert fw.unpack_dual(x * y).tangent is None


def test_levels():
    x, v = torch.rand(2, 3)
    with pytest.raises(RuntimeError, match="no level exists"):
        fw.make_dual(x, v)
    with fw.dual_level():
        dual = fw.make_dual(x, v)
        kept = dual.sin()
        with pytest.raises(RuntimeError, match="already has a forward gradient at the same level"):
            fw.make_dual(dual, v)
        with pytest.raises(RuntimeError, match="that itself has a forward gradient"):
            fw.make_dual(x, dual)
        with pytest.raises(RuntimeError, match="has a different size than that of the original Tensor"):
            fw.make_dual(x, v[:2])
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
            fw.enter_dual_level()
    with fw.dual_level():
        assert fw.unpack_dual(kept).tangent is None
        assert fw.unpack_dual(dual).tangent is None
    torch.testing.assert_close(kept, x.sin())


def test_detach_and_switch():
    x, v = torch.rand(2, 3)
    with fw.dual_level():
        dual = fw.make_dual(x, v)
        assert fw.unpack_dual(dual.detach()).tangent is None
        with fw._set_fwd_grad_enabled(False):
            assert fw.unpack_dual(dual.sin()).tangent is None
        with torch.no_grad():
            torch.testing.assert_close(fw.unpack_dual(dual.sin()).tangent, v * x.cos())


def test_in_place_on_a_view_reaches_its_base():
    x, v = torch.rand(4), torch.rand(2)
    with fw.dual_level():
        base = x.clone()
        base[1:3] = fw.make_dual(torch.rand(2), v)
        tangent = fw.unpack_dual(base).tangent
        torch.testing.assert_close(tangent, torch.cat([torch.zeros(1), v, torch.zeros(1)]))
        dual = fw.make_dual(x.clone(), torch.ones(4))
        dual[:2].mul_(3)
        torch.testing.assert_close(fw.unpack_dual(dual).tangent, torch.tensor([3.0, 3, 1, 1]))


def test_copy_takes_the_tangent_along():
    v = torch.rand(3)
    with fw.dual_level():
        target = torch.zeros(2, 3, dtype=torch.double)
        target.copy_(fw.make_dual(torch.rand(3), v))
        torch.testing.assert_close(fw.unpack_dual(target).tangent, v.double().expand(2, 3))
        target.zero_()
        torch.testing.assert_close(fw.unpack_dual(target).tangent, torch.zeros(2, 3, dtype=torch.double))


def test_backward_through_a_tangent():
    x = torch.rand(3, dtype=torch.double, requires_grad=True)
    v = torch.rand(3, dtype=torch.double, requires_grad=True)
    with fw.dual_level():
        tangent = fw.unpack_dual(fw.make_dual(x, v).sin()).tangent
        tangent.sum().backward()
    torch.testing.assert_close(x.grad, -(x.sin() * v).detach())
    torch.testing.assert_close(v.grad, x.cos().detach())


def test_forward_over_reverse():
    x, v = torch.rand(2, 3, dtype=torch.double)
    with fw.dual_level():
        dual = fw.make_dual(x, v).requires_grad_()
        (g,) = torch.autograd.grad((dual**3).exp().sum(), dual, create_graph=True)
        product = fw.unpack_dual(g).tangent
    y = x.clone().requires_grad_()
    (g,) = torch.autograd.grad((y**3).exp().sum(), y, create_graph=True)
    (expected,) = torch.autograd.grad(g, y, v)
    torch.testing.assert_close(product, expected)


def test_without_a_formula_refuses_with_upstreams_words():
    x = torch.rand(3)
    with fw.dual_level():
        dual = fw.make_dual(x, x)
        with pytest.raises(NotImplementedError, match="Trying to use forward AD with igamma that does not support it"):
            torch.igamma(dual, x)
        with pytest.raises(NotImplementedError, match="because it is an out= function"):
            torch.sin(dual, out=torch.empty(3))


def test_tangent_of_an_expanded_tensor_has_its_own_memory():
    x, z = torch.rand(()), torch.rand(3)

    def f(x, z):
        return z.sum(), z * x

    forward = torch.autograd.functional.jacobian(f, (x, z), vectorize=True, strategy="forward-mode")
    torch.testing.assert_close(tuple(map(tuple, forward)), torch.autograd.functional.jacobian(f, (x, z)))


def by_differences(function, *inputs):
    """Forward mode against difference quotients, in every input at once."""
    tangents = [torch.linspace(-1, 1, max(x.numel(), 1), dtype=x.dtype)[: x.numel()].reshape(x.shape) for x in inputs]
    with fw.dual_level():
        made = function(*(fw.make_dual(x, t) for x, t in zip(inputs, tangents, strict=True)))
        found = fw.unpack_dual(made).tangent
    step = 1e-6
    ahead, behind = (function(*(x + s * t for x, t in zip(inputs, tangents, strict=True))) for s in (step, -step))
    assert torch.allclose(found, (ahead - behind) / (2 * step), atol=1e-7)


def wave(*shape):
    n = torch.Size(shape).numel()
    return (torch.arange(n, dtype=torch.float64) * 0.7 + 0.3).sin().reshape(shape)


INDEX = torch.tensor([[0, 1, 0], [1, 1, 2]])
FORWARD = {
    "addbmm": (torch.addbmm, [(5, 10), (5, 5, 5), (5, 5, 10)]),
    "amax of some": (lambda x: x.amax((0, 2)), [(3, 5, 2)]),
    "amin of one": (lambda x: x.amin(1), [(3, 5, 2)]),
    "aminmax": (lambda x: torch.aminmax(x, dim=0).max, [(4, 3)]),
    "block_diag": (torch.block_diag, [(2, 3), (1, 2)]),
    "glu": (lambda x: torch.nn.functional.glu(x, 1), [(3, 4)]),
    "logcumsumexp": (lambda x: torch.logcumsumexp(300 * x, 0), [(5, 2)]),
    "conv1d": (lambda x, w, b: torch.conv1d(x, w, b, padding=1), [(2, 3, 7), (4, 3, 3), (4,)]),
    "conv2d": (lambda x, w, b: torch.conv2d(x, w, b, stride=2, groups=2), [(1, 4, 6, 5), (2, 2, 3, 2), (2,)]),
    "conv_transpose2d": (lambda x, w: torch.conv_transpose2d(x, w, stride=2), [(1, 2, 3, 3), (2, 3, 2, 2)]),
    "scatter sum": (lambda x, s: x.scatter_reduce(0, INDEX, s, "sum"), [(3, 3), (2, 3)]),
    "scatter mean": (lambda x, s: x.scatter_reduce(0, INDEX, s, "mean", include_self=False), [(3, 3), (2, 3)]),
    "scatter amax": (lambda x, s: x.scatter_reduce(0, INDEX, s, "amax"), [(3, 3), (2, 3)]),
    "scatter amin": (lambda x, s: x.scatter_reduce(0, INDEX, s, "amin", include_self=False), [(3, 3), (2, 3)]),
    "norm of order 0": (lambda x: torch.linalg.vector_norm(x, 0, 0), [(3, 2)]),
    "group_norm": (lambda x: torch.nn.functional.group_norm(x, 2), [(2, 4, 3)]),
}


@pytest.mark.parametrize("name", FORWARD)
def test_tangents_by_differences(name):
    function, shapes = FORWARD[name]
    by_differences(function, *(wave(*s) for s in shapes))


def test_group_norm_of_nothing_has_a_tangent():
    x = torch.zeros(0, 6, 3)
    with fw.dual_level():
        made = torch.nn.functional.group_norm(fw.make_dual(x, x), 1)
        assert fw.unpack_dual(made).tangent.shape == x.shape
