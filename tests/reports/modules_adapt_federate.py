"""Modules, optimisers, test-time adaptation, federated averaging."""

import io
import math

from canonical import T, case, data, err, num, vals

inf, nan = math.inf, math.nan


def _net(torch, norm="bn"):
    nn = torch.nn
    n = {"bn": lambda c: nn.BatchNorm2d(c), "gn": lambda c: nn.GroupNorm(2, c)}[norm]
    m = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, bias=False),
        n(4),
        nn.ReLU(),
        nn.Conv2d(4, 4, 3, stride=2),
        n(4),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 3),
    )
    with torch.no_grad():
        for i, p in enumerate(m.parameters()):
            if p.dim() > 1:
                p.copy_(data(p.shape, b=0.5 * i, scale=0.6))
    return m


def _entropy(l):
    return -(l.softmax(1) * l.log_softmax(1)).sum(1).mean()


@case(
    "entropy adaptation of batch-norm scales with batch statistics: entropy falls, only they move",
    "mr-eggplant/SAR#2",
    rtol=1e-3,
    atol=1e-5,
)
def tent_batch_norm():
    import torch

    m = _net(torch)
    m.eval()
    m.requires_grad_(False)
    ps = []
    for mod in m.modules():
        if isinstance(mod, torch.nn.BatchNorm2d):
            mod.train()
            mod.requires_grad_(True)
            mod.track_running_stats, mod.running_mean, mod.running_var = False, None, None
            ps += [mod.weight, mod.bias]
    base = {k: v.clone() for k, v in m.state_dict().items()}
    opt = torch.optim.SGD(ps, lr=0.5, momentum=0.9)
    x, e = data((6, 1, 8, 8)), []
    with torch.no_grad():
        for _ in range(5):
            with torch.enable_grad():
                l = _entropy(m(x))
                l.backward()
            opt.step()
            opt.zero_grad()
            e.append(num(l.item()))
    moved = sorted(k for k, v in m.state_dict().items() if not torch.equal(v, base[k]))
    return [e, e[-1] < e[0], moved, sorted(base), vals(m[1].weight)]


@case("a 0-dim numpy counter through torch.Tensor, torch.tensor and from_numpy", "flwrlabs/flower#4344")
def counter_from_numpy():
    import numpy as np
    import torch

    z, a = np.array(0), np.array([1.5, 2.5])
    m = torch.nn.BatchNorm1d(2)
    bad = dict(m.state_dict(), num_batches_tracked=torch.zeros(0))
    good = {k: torch.from_numpy(np.asarray(v.numpy())) for k, v in m.state_dict().items()}
    fl = dict(m.state_dict(), num_batches_tracked=torch.tensor(2.75))
    return [
        err(lambda: T(torch.Tensor(z))),
        err(lambda: list(torch.Tensor(np.array(3)).shape)),
        T(torch.tensor(z)),
        T(torch.from_numpy(z)),
        T(torch.as_tensor(np.float64(1.5))),
        T(torch.Tensor(a)),
        T(torch.from_numpy(a)),
        err(lambda: m.load_state_dict(bad), 6),
        str(m.load_state_dict(good)),
        str(m.load_state_dict(fl)),
        T(m.num_batches_tracked),
        T(torch.tensor(np.int16(3))),
        list(torch.Tensor(2, 0).shape),
    ]


def _opt_run(torch, mk, k, st=None, ps=None):
    ps = ps or [torch.nn.Parameter(data((3,))), torch.nn.Parameter(data((2, 2), b=1.0))]
    o = mk(ps)
    if st:
        o.load_state_dict(st)
    for i in range(k):
        o.zero_grad()
        l = sum((p * p).sum() + (p.sin() * (i + 1)).sum() for p in ps)
        l.backward()
        o.step()
    return ps, o


@case(
    "optimisers: seven kinds after five steps; resuming from a saved state equals not stopping",
    "pytorch/pytorch#128208",
    rtol=1e-4,
    atol=1e-6,
)
def optimiser_steps():
    import torch

    O = torch.optim
    r = {}
    for nm, mk in (
        ("sgd", lambda p: O.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.01)),
        ("adam", lambda p: O.Adam(p, 0.1, amsgrad=True)),
        ("adamw", lambda p: O.AdamW(p, 0.1, foreach=False)),
        ("adamwf", lambda p: O.AdamW(p, 0.1, foreach=True)),
        ("rmsprop", lambda p: O.RMSprop(p, 0.01, centered=True, momentum=0.5)),
        ("adagrad", lambda p: O.Adagrad(p, 0.1)),
        ("adadelta", lambda p: O.Adadelta(p)),
        ("nadam", lambda p: O.NAdam(p, 0.05)),
        ("radam", lambda p: O.RAdam(p, 0.05)),
        ("rprop", lambda p: O.Rprop(p, 0.05)),
        ("adamax", lambda p: O.Adamax(p, 0.05)),
    ):
        ps, o = _opt_run(torch, mk, 5)
        qs, o2 = _opt_run(torch, mk, 0)
        f = io.BytesIO()
        torch.save(o.state_dict(), f)
        f.seek(0)
        st = torch.load(f)
        s0 = st["state"][0]
        r[nm] = [
            vals(ps[0].detach()),
            vals(ps[1].detach()),
            sorted(s0),
            T(s0["step"]) if isinstance(s0.get("step"), torch.Tensor) else str(s0.get("step")),
        ]
        a, _ = _opt_run(torch, mk, 2, st, [torch.nn.Parameter(p.detach().clone()) for p in ps])
        b, _ = _opt_run(torch, mk, 0, None, ps)
        r[nm].append(vals(a[0].detach()))
    return r
