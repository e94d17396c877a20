"""torch.func: each transform against what it stands for: backward, a loop over the batch, finite differences."""

import pytest
import torch
from torch.func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap

pytestmark = pytest.mark.filterwarnings("ignore:There is a performance drop")


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def backward(f, x):
    x = x.detach().requires_grad_()
    (g,) = torch.autograd.grad(f(x), x)
    return g


SCALAR_FUNCTIONS = [
    lambda x: x.sin().sum(),
    lambda x: (x * x.exp()).mean(),
    lambda x: (x @ x.t()).tanh().sum(),
    lambda x: torch.logsumexp(x, 1).sum() + x.var(),
    lambda x: torch.softmax(x, -1)[0, 1],
    lambda x: x.reshape(-1)[2:7].prod(),
    lambda x: torch.cat([x, x * 2], 1).max(),
    lambda x: torch.nn.functional.layer_norm(x, (4,)).square().sum(),
]


@pytest.mark.parametrize("f", SCALAR_FUNCTIONS)
def test_grad_is_backward(f):
    x = torch.randn(4, 4, dtype=torch.double)
    torch.testing.assert_close(grad(f)(x), backward(f, x))


@pytest.mark.parametrize("f", SCALAR_FUNCTIONS[:4])
def test_jvp_agrees_with_vjp(f):
    x, v = torch.randn(2, 4, 4, dtype=torch.double)
    value, tangent = jvp(f, (x,), (v,))
    torch.testing.assert_close(value, f(x))
    torch.testing.assert_close(tangent, (backward(f, x) * v).sum())


def test_nested_grad():
    x = torch.tensor(0.7, dtype=torch.double)
    torch.testing.assert_close(grad(grad(torch.sin))(x), -x.sin())
    torch.testing.assert_close(grad(grad(grad(lambda x: x**4)))(x), 24 * x)
    torch.testing.assert_close(grad(lambda x: grad(lambda y: x * y.sin())(x))(x), x.cos() - x * x.sin())


def test_grad_and_value_has_aux_argnums():
    x, y = torch.randn(2, 3)
    (gx, gy), (value, aux) = grad_and_value(lambda a, b: ((a * b).sum(), a + b), argnums=(0, 1), has_aux=True)(x, y)
    torch.testing.assert_close((gx, gy, value, aux), (y, x, (x * y).sum(), x + y))


def test_in_place_inside_grad():
    def f(x):
        y = x.clone()
        y[1:] *= x[:-1]
        y.mul_(2).add_(x)
        return y.sum()

    x = torch.randn(5, dtype=torch.double)
    torch.testing.assert_close(grad(f)(x), backward(f, x))


def test_writing_a_captured_tensor_is_an_error():
    captured = torch.zeros(3)
    with pytest.raises(RuntimeError, match="would mutate a captured Tensor"):
        grad(lambda x: captured.add_(x).sum())(torch.ones(3))
    with pytest.raises(RuntimeError, match="calling|attempting to call Tensor.requires_grad_"):
        grad(lambda x: x.clone().requires_grad_().sum())(torch.ones(3))


def test_no_grad_inside_and_outside():
    x = torch.tensor(3.0)

    def f(x):
        with torch.no_grad():
            shift = x**2
        return x**2 - shift

    assert grad(f)(x) == 2 * x
    with torch.no_grad():
        assert grad(f)(x) == 2 * x


def test_vjp_and_jacobians():
    a = torch.randn(3, 4, dtype=torch.double)
    x = torch.randn(4, dtype=torch.double)
    out, pull = vjp(lambda x: a @ x, x)
    torch.testing.assert_close(out, a @ x)
    torch.testing.assert_close(pull(torch.ones(3, dtype=torch.double))[0], a.sum(0))
    for jac in (jacrev, jacfwd):
        torch.testing.assert_close(jac(lambda x: a @ x)(x), a)
    torch.testing.assert_close(jacrev(torch.sin, chunk_size=2)(x), x.cos().diag())
    h = hessian(lambda x: (x**3).sum())(x)
    torch.testing.assert_close(h, (6 * x).diag())
    torch.testing.assert_close(jacrev(jacrev(lambda x: (x**3).sum()))(x), h)


def test_linearize():
    x, v = torch.randn(2, 3, dtype=torch.double)
    value, push = linearize(torch.sin, x)
    torch.testing.assert_close((value, push(v)), (x.sin(), x.cos() * v))


def test_functional_call_and_per_sample_gradients():
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()
    params = {k: v.detach() for k, v in model.named_parameters()}
    x, y = torch.randn(6, 4, dtype=torch.double), torch.randn(6, 1, dtype=torch.double)

    def loss(params, x, y):
        return (functional_call(model, params, (x,)) - y).square().mean()

    each = vmap(grad(loss), (None, 0, 0))(params, x, y)
    for i in range(6):
        model.zero_grad()
        loss(dict(model.named_parameters()), x[i], y[i]).backward()
        for name, p in model.named_parameters():
            torch.testing.assert_close(each[name][i], p.grad)


# ---- vmap ------------------------------------------------------------------------------------------------------

UNARY = [
    torch.sin,
    torch.sum,
    torch.mean,
    torch.prod,
    torch.max,
    torch.numel,
    lambda x: x.sum(0),
    lambda x: x.sum((0, -1), keepdim=True),
    lambda x: x.var(-1),
    lambda x: x.std(),
    lambda x: x.argmax(),
    lambda x: x.argmax(1),
    lambda x: x.max(0).values,
    lambda x: x.transpose(0, 1),
    lambda x: x.permute(1, 0),
    lambda x: x.t(),
    lambda x: x.contiguous().view(-1),
    lambda x: x.reshape(2, -1),
    lambda x: x.flatten(),
    lambda x: x.unsqueeze(-1),
    lambda x: x[None].squeeze(),
    lambda x: x.unsqueeze(1).expand(3, 5, 4),
    lambda x: x.expand(2, 3, 4),
    lambda x: x.repeat(2, 1, 2),
    lambda x: x[1],
    lambda x: x[:, 1:3],
    lambda x: x[..., None],
    lambda x: x[torch.tensor([0, 2])],
    lambda x: x[:, torch.tensor([0, 2, 2])],
    lambda x: x[torch.tensor([0, 2]), torch.tensor([1, 1])],
    lambda x: torch.stack(x.unbind(1)),
    lambda x: torch.cat(x.split(2, -1), 0),
    lambda x: x.chunk(2, 1)[1],
    lambda x: x.diagonal(),
    lambda x: x.softmax(-1),
    lambda x: x.log_softmax(0),
    lambda x: x.cumsum(1),
    lambda x: x.sort(1).values,
    lambda x: x.topk(2, 0).values,
    lambda x: x.flip(0),
    lambda x: x.roll(1),
    lambda x: x.roll(1, 0),
    lambda x: x.tril(),
    lambda x: x.norm(),
    lambda x: x.logsumexp(1),
    lambda x: x.clone().mul_(2),
    lambda x: x @ x.t(),
    lambda x: x @ x[0],
    lambda x: torch.where(x > 0, x, 0.0),
    lambda x: x.masked_fill(x > 0, 1.0),
    lambda x: torch.zeros_like(x) + x.new_ones(4),
    lambda x: torch.nn.functional.layer_norm(x, (4,)),
    lambda x: torch.nn.functional.gelu(x),
    lambda x: torch.nn.functional.linear(x, x),
    lambda x: torch.einsum("ij,kj->ik", x, x),
    lambda x: x.double(),
    lambda x: x.to(torch.int64),
    lambda x: x.gather(1, torch.tensor([[0], [1], [2]])),
    lambda x: x.index_select(1, torch.tensor([1, 1])),
]


@pytest.mark.parametrize("batch_dim", [0, 1, 2])
@pytest.mark.parametrize("f", UNARY, ids=range(len(UNARY)))
def test_vmap_is_a_loop(f, batch_dim):
    if f is torch.numel:
        return
    x = torch.randn(3, 4)
    batch = torch.stack([x, x + 1, x * 2, x - 0.5, -x], batch_dim)
    expected = torch.stack([f(e.contiguous()) for e in batch.unbind(batch_dim)])
    torch.testing.assert_close(vmap(f, batch_dim)(batch), expected)


BINARY = [
    torch.add,
    torch.mul,
    torch.sub,
    torch.div,
    torch.pow,
    torch.maximum,
    torch.atan2,
    torch.eq,
    lambda a, b: a + 2.5 * b,
    lambda a, b: a.clone().add_(b) if a.dim() >= b.dim() else a + b,
]


@pytest.mark.parametrize("shapes", [((3,), (3,)), ((2, 3), (3,)), ((3,), (2, 3)), ((), (3,)), ((2, 1), (1, 3))])
@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0), (-1, 0)])
@pytest.mark.parametrize("f", BINARY, ids=range(len(BINARY)))
def test_vmap_broadcasts(f, dims, shapes):
    operands, lists = [], []
    for shape, dim in zip(shapes, dims, strict=True):
        each = [torch.rand(shape) + 0.5 for _ in range(4)] if dim is not None else [torch.rand(shape) + 0.5] * 4
        operands.append(each[0] if dim is None else torch.stack(each, dim))
        lists.append(each)
    if f is BINARY[-1] and dims[0] is None:
        return
    try:
        expected = torch.stack([f(a, b) for a, b in zip(*lists, strict=True)])
    except RuntimeError:
        return  # an in-place form that doesn't broadcast
    torch.testing.assert_close(vmap(f, dims)(*operands), expected)


@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0), (1, 2)])
@pytest.mark.parametrize(
    ("f", "shapes"),
    [
        (torch.mm, ((2, 3), (3, 4))),
        (torch.mv, ((2, 3), (3,))),
        (torch.dot, ((3,), (3,))),
        (torch.bmm, ((5, 2, 3), (5, 3, 4))),
        (torch.matmul, ((5, 2, 3), (3,))),
        (torch.outer, ((3,), (2,))),
        (lambda a, b: torch.addmm(torch.ones(4), a, b, beta=2, alpha=3), ((2, 3), (3, 4))),
        (lambda a, b: torch.nn.functional.linear(a, b, torch.ones(4)), ((2, 3), (4, 3))),
    ],
)
def test_vmap_products(f, shapes, dims):
    dims = tuple(d if d is None else min(d, len(s)) for d, s in zip(dims, shapes, strict=True))
    each = [
        [torch.randn(s) for _ in range(4)] if d is not None else [torch.randn(s)] * 4 for s, d in zip(shapes, dims, strict=True)
    ]
    operands = [e[0] if d is None else torch.stack(e, d) for e, d in zip(each, dims, strict=True)]
    torch.testing.assert_close(vmap(f, dims)(*operands), torch.stack([f(a, b) for a, b in zip(*each, strict=True)]))


def test_vmap_number_keeps_its_rank_in_promotion():
    numbers = torch.rand(3, dtype=torch.double)
    vector = torch.rand(4)
    out = vmap(lambda n: vector * n)(numbers)
    assert out.dtype == torch.float32
    torch.testing.assert_close(out, torch.stack([vector * n for n in numbers]))


def test_vmap_nested_out_dims_and_trees():
    x, y = torch.randn(3, 4), torch.randn(5)
    torch.testing.assert_close(vmap(vmap(lambda a, b: a * b, (None, 0)), (0, None))(x, y), x[:, None] * y[None, :, None])
    out = vmap(lambda d: {"twice": d["a"] * 2, "sum": d["a"].sum()}, out_dims={"twice": 1, "sum": 0})({"a": x})
    torch.testing.assert_close(out, {"twice": 2 * x.t(), "sum": x.sum(1)})
    torch.testing.assert_close(vmap(torch.sum, chunk_size=2)(x), x.sum(1))
    torch.testing.assert_close(vmap(lambda a: torch.ones(2))(x), torch.ones(3, 2))


def test_vmap_of_grad_and_grad_of_vmap():
    x = torch.randn(5, 3, dtype=torch.double)
    torch.testing.assert_close(vmap(grad(lambda x: x.sin().sum()))(x), x.cos())
    torch.testing.assert_close(grad(lambda x: vmap(lambda r: r.prod())(x).sum())(x), backward(lambda x: x.prod(1).sum(), x))
    leaf = x.clone().requires_grad_()
    vmap(lambda r: (r * r).sum())(leaf).sum().backward()
    torch.testing.assert_close(leaf.grad, 2 * x)


def test_vmap_randomness():
    x = torch.zeros(3, 4)
    with pytest.raises(RuntimeError, match="called random operation while in randomness error mode"):
        vmap(lambda x: x + torch.rand(4))(x)
    same = vmap(lambda x: x + torch.rand(4), randomness="same")(x)
    different = vmap(lambda x: x + torch.rand(4), randomness="different")(x)
    assert (same == same[0]).all()
    assert not (different[1:] == different[0]).any()
    torch.manual_seed(5)
    drawn = vmap(lambda x: x + torch.rand(4), randomness="different")(x)
    torch.manual_seed(5)
    torch.testing.assert_close(drawn, torch.rand(3, 4))
    dropped = vmap(lambda x: torch.nn.functional.dropout(x + 1, 0.5), randomness="different")(torch.ones(64, 16))
    assert set(dropped.unique().tolist()) == {0.0, 4.0}


def test_vmap_errors():
    x = torch.randn(3)
    with pytest.raises(RuntimeError, match=r"calling .item\(\) on a Tensor"):
        vmap(lambda x: x.item())(x)
    with pytest.raises(RuntimeError, match="data-dependent control flow"):
        vmap(lambda x: x if x > 0 else -x)(x)
    with pytest.raises(RuntimeError, match="can output dynamic shape"):
        vmap(lambda x: x.nonzero())(x)
    with pytest.raises(RuntimeError, match="is not possible because there exists a Tensor"):
        vmap(lambda x: torch.zeros(()).add_(x))(x)


def test_tensors_outlive_their_transform():
    kept = []
    x = torch.randn(3)
    grad(lambda x: (kept.append(x.sin()), x.sum())[1])(x)
    torch.testing.assert_close(kept[0] + 0, x.sin())
    assert torch._C._functorch.is_dead_tensor_wrapper(kept[0])


def test_wrappers_tell_what_they_are():
    seen = {}

    def f(x):
        c = torch._C._functorch
        seen.update(
            batched=c.is_batchedtensor(x), level=c.maybe_get_level(x), dim=c.maybe_get_bdim(x), inner=c.get_unwrapped(x)
        )
        seen["text"] = repr(x)
        return x

    x = torch.randn(3, 2)
    vmap(f, 1)(x)
    assert seen["batched"] and seen["level"] == 1 and seen["dim"] == 1 and seen["inner"].shape == (3, 2)
    assert "BatchedTensor" in seen["text"]
