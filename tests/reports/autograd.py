"""Gradients at kinks, views and versions, hooks, higher derivatives, checkpointing."""

import math

from canonical import V, case, err, vals

inf, nan = math.inf, math.nan


def _g(f, *xs):
    import torch

    ts = [torch.tensor(x, requires_grad=True) for x in xs]
    return [None if g is None else vals(g) for g in torch.autograd.grad(f(*ts).sum(), ts, allow_unused=True)]


@case(
    "gradients exactly at the kinks of relu, abs, clamp, relu6, hardtanh, hardswish, leaky and friends",
    "pytorch/pytorch#184574",
)
def kink_gradients():
    import torch

    F = torch.nn.functional
    x = [-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.0]
    fs = (
        torch.relu,
        torch.abs,
        torch.sign,
        lambda t: t.clamp(0, 6),
        lambda t: t.clamp(min=0),
        lambda t: t.clamp(max=1),
        lambda t: torch.clamp_min(t, 0),
        F.relu6,
        F.hardtanh,
        F.hardswish,
        F.hardsigmoid,
        lambda t: F.leaky_relu(t, 0.1),
        lambda t: F.elu(t),
        F.selu,
        F.celu,
        F.softsign,
        F.hardshrink,
        F.softshrink,
        lambda t: F.threshold(t, 0.5, -1),
        lambda t: F.prelu(t, torch.tensor([0.25])),
        torch.round,
        torch.frac,
        lambda t: t.trunc(),
        lambda t: torch.nn.functional.smooth_l1_loss(t, torch.zeros(8), reduction="none"),
        lambda t: F.huber_loss(t, torch.zeros(8), reduction="none", delta=0.5),
        lambda t: F.l1_loss(t, torch.zeros(8), reduction="none"),
    )
    return [_g(f, x) for f in fs]


@case("saved tensors changed in place are caught by the version counter; the message names the op", "pytorch/pytorch#18523")
def version_errors():
    import torch

    o = []

    def a(x):
        y = x.exp()
        y += 1
        return y.sum()

    def b(x):
        y = x.sigmoid()
        y[0] = 0
        return y.sum()

    def c(x):
        w = torch.ones(3)
        z = (x * w).sum()
        w.mul_(2)
        return z

    def d(x):
        y = x * 2
        v = y.view(3, 1)
        z = (v * v).sum()
        y.add_(1)
        return z

    def e(x):
        y = x * 2
        y.detach().zero_()
        return (y * y).sum()

    def f(x):
        y = x * 2
        z = (y * y).sum()
        y.data.zero_()
        return z

    def g(x):
        y = x.relu()
        y.mul_(3)
        return y.sum()

    for fn in (a, b, c, d, e, f, g):
        x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        o.append(err(lambda: torch.autograd.grad(fn(x), x)[0].tolist(), 12))
    return o


@case("order and effect of tensor hooks, retain_grad, post-accumulate hooks and module hooks", "pytorch/pytorch#81296")
def hook_order():
    import torch

    log = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    y.retain_grad()
    y.register_hook(lambda g: log.append(("y1", g.tolist())))
    y.register_hook(lambda g: g * 2)
    y.register_hook(lambda g: log.append(("y3", g.tolist())))
    h = x.register_hook(lambda g: log.append(("x", g.tolist())) or g + 1)
    x.register_post_accumulate_grad_hook(lambda t: log.append(("acc", t.grad.tolist())))
    (y * y).sum().backward()
    h.remove()
    (x * 2).sum().backward()
    m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    with torch.no_grad():
        for p in m.parameters():
            p.fill_(0.5)
    m[0].register_forward_pre_hook(lambda mod, i: log.append("pre") or (i[0] * 2,))
    m[0].register_forward_hook(lambda mod, i, o: log.append(("fwd", i[0].tolist())) or o + 1)
    m[1].register_full_backward_hook(lambda mod, gi, go: log.append(("bwd", gi[0].tolist(), go[0].tolist())))
    m[0].register_full_backward_pre_hook(lambda mod, go: log.append("bpre") or (go[0] * 10,))
    m(torch.ones(1, 2)).sum().backward()
    return [V(log), vals(y.grad), vals(x.grad), vals(m[0].weight.grad)]


@case(
    "second and third derivatives: polynomials, tanh, softplus, softmax, log_softmax with gather, prod, norm",
    "thisisthepy/torchnative README (double backward refused)",
    rtol=1e-4,
    atol=1e-5,
)
def double_backward():
    import torch

    F = torch.nn.functional
    o = []
    for f in (
        lambda t: (t**4).sum(),
        lambda t: torch.tanh(t).sum(),
        lambda t: F.softplus(t).sum(),
        lambda t: (t.softmax(0) * torch.arange(3.0)).sum(),
        lambda t: t.log_softmax(0)[1],
        lambda t: t.prod(),
        lambda t: t.norm(),
        lambda t: F.gelu(t).sum(),
        lambda t: F.silu(t).pow(2).sum(),
        lambda t: torch.sigmoid(t).log().sum(),
        lambda t: F.layer_norm(t, (3,)).pow(3).sum(),
        lambda t: F.cross_entropy(t[None], torch.tensor([2])),
        lambda t: (t.cumsum(0) * t.cumprod(0)).sum(),
        lambda t: t.logsumexp(0) ** 2,
        lambda t: t.var() * t.max(),
        lambda t: F.huber_loss(t, torch.zeros(3)),
        lambda t: F.mish(t).sum(),
        lambda t: torch.atan2(t, t + 2).sum(),
    ):
        x = torch.tensor([0.3, -0.8, 1.2], requires_grad=True)
        (g,) = torch.autograd.grad(f(x), x, create_graph=True)
        (h,) = torch.autograd.grad((g * torch.tensor([1.0, 2.0, 3.0])).sum(), x, create_graph=True)
        k = torch.autograd.grad(h.sum(), x, allow_unused=True)[0] if h.requires_grad else None
        o.append([vals(g), vals(h), None if k is None else vals(k)])
    return o
