"""Records upstream's random streams: run with upstream's torch on a machine with AVX2, it writes rng_streams.tsv here.

A row is one operator on one layout, called twice in a row on one generator (the second call meets what the first left
behind). It holds checksums of both results in logical order and of the generator's state afterwards. Long results
(--long) are for a check by hand; they stay out of git.
"""

import ctypes
import ctypes.util
import itertools
import pathlib
import struct
import sys
import zlib

import torch

torch.set_num_threads(1)
FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTS = ["uint8", "int8", "int16", "int32", "int64"]
ALL = FLOATS + INTS + ["bool"]
# (sizes, strides): below and above the 16 elements where normal_ changes, rests, transposed, gaps, channels last,
# one-sized, permuted.
DENSE = [
    ((1,), (1,)),
    ((7,), (1,)),
    ((15,), (1,)),
    ((16,), (1,)),
    ((17,), (1,)),
    ((31,), (1,)),
    ((1000,), (1,)),
    ((3, 700), (700, 1)),
]
STRIDED = [
    ((5, 7), (1, 5)),
    ((40,), (2,)),
    ((4, 6), (12, 2)),
    ((2, 3, 4, 5), (60, 1, 15, 3)),
    ((3, 1, 6), (1, 9, 3)),
    ((2, 3, 4), (4, 8, 1)),
    ((33, 20), (1, 40)),
    ((), ()),
    ((0, 3), (3, 1)),
    ((6, 2, 3), (8, 4, 1)),
]
LONG = [((1 << 20,), (1,)), ((1000003,), (1,)), ((1025, 513), (1, 1025))]


def pattern(count, dtype, factor):
    """The parameter tensors' values; the C++ test makes the same."""
    return (torch.arange(count, dtype=torch.int64) * 37 % 101).double().mul(factor).to(dtype)


def broadcast(sizes):
    """Strides of a parameter that is expanded over every second dimension."""
    kept = [s if i % 2 == 0 else 1 for i, s in enumerate(sizes)]
    strides = torch.empty(kept, device="meta").stride()
    return kept, tuple(st if i % 2 == 0 else 0 for i, st in enumerate(strides))


def cases(layouts):
    both = layouts
    for dtype, layout in itertools.product(FLOATS, both):
        for args in [(0.0, 1.0), (-2.5, 3.7), (1.0, 2.0)]:
            yield "uniform", dtype, layout, args
        for args in [(0.0, 1.0), (0.3, 2.1)]:
            yield "normal", dtype, layout, args
        yield "log_normal", dtype, layout, (0.5, 0.7)
        yield "cauchy", dtype, layout, (0.5, 1.3)
        for args in [(1.0,), (0.37,)]:
            yield "exponential", dtype, layout, args
        yield "poisson", dtype, layout, (0.3,)
        yield "multinomial", dtype, layout, (5,)
        for samples in (1, 3, 6):
            yield "multinomial_once", dtype, layout, (samples,)
    for dtype, layout in itertools.product(["float32", "float64"], both):
        for args in [(0.3,), (2.0,)]:
            yield "binomial", dtype, layout, args
        for args in [(0.011,), (0.2,)]:
            yield "standard_gamma", dtype, layout, args
    for dtype, layout in itertools.product(FLOATS + INTS, both):
        yield "geometric", dtype, layout, (0.13,)
    for dtype, layout in itertools.product(ALL, both):
        yield "random", dtype, layout, ()
        for p in (0.0, 0.3, 1.0):
            yield "bernoulli", dtype, layout, (p,)
        for p in FLOATS:
            yield "bernoulli_tensor:" + p, dtype, layout, (0.01,)
    ranges = {
        "uint8": [(0, 256), (3, 9)],
        "int8": [(-128, 128)],
        "int16": [(-300, 30000)],
        "bool": [(0, 2), (1, 2)],
        "int32": [(0, 10), (-(1 << 31), 1 << 31), (5, (1 << 28) + 5)],
        "uint16": [(0, 60000)],
        "uint32": [(7, 1 << 32)],
        "int64": [(0, 10), (-5, 1 << 40), (0, (1 << 28) - 1), (-(1 << 63), (1 << 63) - 1)],
        "uint64": [(1, 1 << 60)],
        "float32": [(0, 10), (-5, 1 << 23)],
        "float64": [(0, 1 << 50)],
        "float16": [(-7, 2000)],
        "bfloat16": [(0, 200)],
    }
    for dtype, spans in ranges.items():
        for args, layout in itertools.product(spans, both):
            yield "random_from_to", dtype, layout, args
    for dtype in INTS + ["float32", "float64"]:
        low = {"uint8": 250, "int8": -3, "int16": -3}.get(dtype, 1000)
        yield "random_from", dtype, both[0], (low,)
    for dtype in ["int64", "float32", "float64", "bfloat16"]:
        yield "random_full", dtype, both[-1], ()
    for dtype, n in itertools.product(FLOATS + INTS, (0, 1, 2, 100)):
        yield "randperm", dtype, ((n,), (1,)), ()
    yield "randperm", "int64", ((5000,), (1,)), ()
    yield "randperm", "int32", ((50,), (3,)), ()


def target(dtype, layout):
    sizes, strides = layout
    empty = any(s == 0 for s in sizes)
    length = 0 if empty else 1 + sum((s - 1) * t for s, t in zip(sizes, strides, strict=True))
    return torch.zeros(length, dtype=dtype).as_strided(sizes, strides)


def call(op, dtype, layout, args):
    name, _, p_dtype = op.partition(":")
    out = target(dtype, layout)
    if name in ("uniform", "normal", "log_normal", "cauchy", "exponential", "geometric", "bernoulli", "random"):
        return getattr(out, name + "_")(*args)
    if name == "random_from_to":
        return out.random_(*args)
    if name == "random_from":
        return out.random_(args[0], None)
    if name == "random_full":
        return out.random_(-(1 << 63), None)
    if name == "randperm":
        return torch.randperm(out.numel(), out=out)
    if name == "bernoulli_tensor":
        kept, strides = broadcast(out.shape)
        p = pattern(torch.Size(kept).numel(), getattr(torch, p_dtype), args[0]).reshape(kept).clamp(max=1)
        return out.bernoulli_(p.expand(out.shape))
    if name == "poisson":
        return torch.poisson(out.copy_(pattern(out.numel(), dtype, args[0]).reshape(out.shape)))
    if name == "binomial":
        count = out.copy_(pattern(out.numel(), dtype, args[0]).floor().reshape(out.shape))
        kept, _ = broadcast(out.shape)
        p = pattern(torch.Size(kept).numel(), dtype, 0.01).reshape(kept)
        return torch.binomial(count, p.expand(out.shape))
    if name == "standard_gamma":
        return torch._standard_gamma(out.copy_(pattern(out.numel(), dtype, args[0]).reshape(out.shape)))
    if name == "multinomial":
        if out.dim() not in (1, 2) or out.numel() == 0:
            return None
        weights = out.copy_(pattern(out.numel(), dtype, 1.0).reshape(out.shape).add(1))
        return torch.multinomial(weights, args[0], replacement=True)
    if name == "multinomial_once":
        if out.dim() not in (1, 2) or out.numel() == 0 or out.size(-1) < args[0]:
            return None
        weights = out.copy_(pattern(out.numel(), dtype, 1.0).reshape(out.shape).add(1))
        return torch.multinomial(weights, args[0])
    raise AssertionError(op)


def data(t):
    return bytes(t.contiguous().reshape(-1).view(torch.uint8).numpy())


def libm():
    """A checksum of the C library's double functions, which upstream's double samples are made of: another libm, or the
    same one on a CPU without fused instructions, gives other last bits, and then upstream's samples differ too."""
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    crc = 0
    for name in ["log", "log1p", "exp", "sin", "cos", "tan"]:
        function = getattr(library, name)
        function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double]
        crc = zlib.crc32(struct.pack("<30000d", *(function(i / 30011) for i in range(1, 30001))), crc)
    return f"{crc:08x}"


def main():
    long = "--long" in sys.argv
    path = pathlib.Path(__file__).with_name("rng_long.tsv" if long else "rng_streams.tsv")
    rows = []
    for op, dtype, layout, args in cases(LONG if long else DENSE + STRIDED):
        torch.manual_seed(len(rows))
        try:
            results = [call(op, getattr(torch, dtype), layout, args) for _ in range(2)]
        except (NotImplementedError, RuntimeError) as error:
            results = None
            print("skipped", op, dtype, layout, args, str(error).splitlines()[0])
        if results is None or results[0] is None:
            continue
        crc = zlib.crc32(data(results[1]), zlib.crc32(data(results[0])))
        state = zlib.crc32(bytes(torch.get_rng_state().numpy()))
        first = data(results[0])[:8].hex() or "-"
        numbers = [",".join(map(str, v)) or "-" for v in (layout[0], layout[1])]
        rows.append(
            "\t".join(
                [op, dtype, *numbers, ",".join(map(repr, args)) or "-", str(len(rows)), f"{crc:08x}", f"{state:08x}", first]
            )
        )
    head = (
        f"# torch {torch.__version__.split('+')[0]}: op dtype sizes strides args seed crc32(results) crc32(state) first bytes"
    )
    path.write_text("\n".join([head, f"# libm {libm()}", *rows]) + "\n")
    print(len(rows), "rows")


if __name__ == "__main__":
    main()
