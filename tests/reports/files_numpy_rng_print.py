"""Saving and loading, numpy and DLPack, random numbers, data loading, printing, autocast."""

import io
import math

from canonical import T, case, err, num, vals

inf, nan = math.inf, math.nan


def _trip(torch, o, **kw):
    f = io.BytesIO()
    torch.save(o, f, **kw)
    n = f.tell()
    f.seek(0)
    return torch.load(f), n


@case("saving a small view writes the whole storage; a clone does not; loaded views share memory again", "pytorch/pytorch#1995")
def save_views():
    import torch

    x = torch.arange(100000.0)
    v, n = _trip(torch, x[:10])
    c, m = _trip(torch, x[:10].clone())
    b = torch.arange(12.0).reshape(3, 4)
    l, _ = _trip(torch, [b, b.t(), b[1], b[1:, ::2]])
    l[0][1, 0] = -1
    return [
        n > 400000,
        m < 3000,
        v.untyped_storage().nbytes(),
        T(v),
        [list(t.stride()) for t in l],
        [t.storage_offset() for t in l],
        vals(l[1]),
        vals(l[2]),
        vals(l[3]),
        len({t.untyped_storage().data_ptr() for t in l}),
    ]


@case(
    "numpy bridge: shared memory both ways, read-only arrays, byte order, bfloat16, types without a counterpart",
    "pytorch/pytorch#5442",
)
def numpy_bridge():
    import numpy as np
    import torch

    a = np.arange(4.0)
    t = torch.from_numpy(a)
    t[0] = 7
    a[1] = 8
    r = np.arange(3)
    r.flags.writeable = False
    n = torch.ones(2, 3).t().numpy()
    return [
        a.tolist(),
        vals(t),
        vals(torch.from_numpy(r)),
        err(lambda: torch.from_numpy(np.arange(3, dtype=">f4"))),
        err(lambda: torch.tensor(np.arange(3, dtype=">f4"))),
        err(lambda: torch.ones(2, dtype=torch.bfloat16).numpy()),
        err(lambda: str(torch.ones(2, dtype=torch.bfloat16).float().numpy().dtype)),
        err(lambda: torch.from_numpy(np.array(["a"])), 6),
        err(lambda: torch.from_numpy(np.arange(2, dtype=np.uint16)).dtype),
        err(lambda: torch.from_numpy(np.array([1 + 2j])).dtype),
        err(lambda: torch.from_numpy([1])),
        list(n.strides),
        n.shape,
        str(torch.tensor(2).numpy().dtype),
        err(lambda: torch.ones(1, requires_grad=True).numpy()),
        err(lambda: torch.tensor([1j]).conj().numpy()),
        err(lambda: torch.tensor([1j]).conj().resolve_conj().numpy().tolist()),
        T(torch.from_numpy(np.broadcast_to(np.float32(3), (2, 2)).copy())),
        err(lambda: torch.from_numpy(np.zeros(5, dtype=[("a", "f4")])), 4),
        T(torch.from_numpy(np.arange(12).reshape(3, 4)[:, 1::2])),
        err(lambda: torch.as_tensor(np.ma.array([1, 2])).tolist()),
    ]


@case(
    "seeded streams: values of every sampler, short and long rows, and where the two paths of randn differ",
    "thisisthepy/torchnative docs/RNG.md",
    rtol=1e-5,
)
def seeded_streams():
    import torch

    o = {}
    for nm, f in (
        ("rand", lambda n: torch.rand(n)),
        ("randn", lambda n: torch.randn(n)),
        ("randn64", lambda n: torch.randn(n, dtype=torch.float64)),
        ("rand64", lambda n: torch.rand(n, dtype=torch.float64)),
        ("randint", lambda n: torch.randint(-5, 1000, (n,))),
        ("randperm", lambda n: torch.randperm(n)),
        ("bern", lambda n: torch.bernoulli(torch.full((n,), 0.3))),
        ("normal", lambda n: torch.normal(torch.arange(float(n)), 2.0)),
        ("exp", lambda n: torch.empty(n).exponential_(2.0)),
        ("uni", lambda n: torch.empty(n).uniform_(-1, 3)),
        ("geo", lambda n: torch.empty(n).geometric_(0.4)),
        ("logn", lambda n: torch.empty(n).log_normal_()),
        ("cauchy", lambda n: torch.empty(n).cauchy_()),
        ("random8", lambda n: torch.empty(n, dtype=torch.int8).random_()),
        ("half", lambda n: torch.rand(n, dtype=torch.float16)),
        ("bf16n", lambda n: torch.randn(n, dtype=torch.bfloat16)),
        ("poisson", lambda n: torch.poisson(torch.full((n,), 4.0))),
        ("big", lambda n: torch.randint(0, 2**40, (n,))),
    ):
        r = []
        for n in (3, 15, 16, 17, 33):
            torch.manual_seed(42)
            r.append(vals(f(n))[-4:])
        o[nm] = r
    torch.manual_seed(7)
    o["seq"] = [
        num(torch.randn(1).item()),
        num(torch.randn(1).item()),
        num(torch.rand(1).item()),
        vals(torch.randn(2, 9).t()[::3]),
        num(torch.randn(1).item()),
    ]
    return o


class _Noise:
    def __len__(self):
        return 8

    def __getitem__(self, i):
        import numpy as np
        import torch

        return i, int(np.random.randint(1 << 30)), torch.rand(1).item()


@case(
    "printing: sizes that switch to scientific, NaN and inf, complex, long rows, empties, types, gradients",
    "pytorch/pytorch#9395",
)
def printing():
    import torch

    x = torch.tensor([4.0, inf, 1.5, -inf, 0.0, nan, 1.0])
    o = [
        str(torch.tensor(v))
        for v in (
            [1e-5],
            [2e-5],
            [0.05524],
            1e-3,
            [1e28, -1e-28],
            [1, 1010],
            [1.0, 1010.0],
            [1.5, 2000.0],
            [1e8, 1.0],
            [99000000.0],
            2341234123412341,
            [True, False],
            [],
            [[]],
            3.0,
            [10.0, 0.1, 0.01],
            [-0.0, 0.0],
        )
    ]
    o += [
        str(x),
        str(torch.tensor([1.2 + 1.34j, 1e-5j])),
        str(torch.tensor([complex(inf, nan), 1])),
        str(torch.arange(1001.0)),
        str(torch.zeros(2, 0, 3)),
        str(torch.ones(2, dtype=torch.bfloat16)),
        str(torch.ones(1, dtype=torch.float64)),
        str(torch.ones(1, requires_grad=True)),
        str(torch.ones(1, requires_grad=True) * 2),
        str(torch.arange(12).reshape(2, 2, 3)),
        str(torch.nn.Parameter(torch.ones(1))),
        str(torch.zeros(30, 40)),
        str(torch.tensor([1, -20, 300])),
        repr(torch.Size([1])),
        str(torch.int8),
        f"{torch.tensor(2.5):.2f}",
        f"{torch.tensor(3)}",
        str(torch.zeros(1, device="meta")),
        str(torch.empty(0, dtype=torch.int64)),
        str(torch.arange(30.0)),
    ]
    return o
