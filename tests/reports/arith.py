"""Integer and float arithmetic, promotion, ranges."""

from canonical import T, case, num


@case(
    "remainder: the sign of a zero result, the same in scalar tail and vector body (upstream's, not Python's)",
    "pytorch/pytorch#193755",
    sz=True,
)
def remainder_zero_sign():
    import torch

    out = {}
    for n in (1, 9, 33):
        a = torch.remainder(torch.full((n,), -1.0), torch.full((n,), 1.0))
        b = torch.remainder(torch.full((n,), 2.0), torch.full((n,), -1.0))
        out[str(n)] = [num(a[-1].item()), num(b[-1].item())]
    return out


@case("a dimensioned integer keeps its type beside a wider 0-dim of its category, and wraps", "pytorch/pytorch#115907")
def promote_zero_dim():
    import torch

    i8, u8 = torch.ones(2, dtype=torch.int8), torch.ones(2, dtype=torch.uint8)
    return [
        T(torch.tensor([1], dtype=torch.int32) + torch.tensor(2**31)),
        T(i8 * torch.tensor(1.5, dtype=torch.float64)),
        T(i8 * torch.ones(2, dtype=torch.int64)),
        T(i8 * 9223372036854775807),
        T(i8 + torch.tensor(127, dtype=torch.uint8)),
        T(u8 + torch.tensor(255, dtype=torch.int16)),
        T(u8 + 1.5),
        T(u8 - i8),
        T(torch.tensor(True) + torch.tensor(True)),
        T(torch.tensor([True]) * 3),
        T(torch.ones(1, dtype=torch.float16) + torch.ones((), dtype=torch.float64)),
        T(torch.ones(1, dtype=torch.float16) + torch.ones(1, dtype=torch.bfloat16)),
        T(torch.ones(1, dtype=torch.int64) / 3),
        T(torch.ones(1, dtype=torch.bfloat16) * 1e30),
    ]


@case("negative and large floats to uint8 wrap the same in the vector body and in the tail", "pytorch/pytorch#168972")
def float_to_uint8():
    import torch

    x = torch.tensor([-1.0, -2.5, 300.0, 255.9, -0.5, 256.0, -128.0, 3.7])
    big = x.repeat(8)
    return [
        T(x.to(torch.uint8)),
        T(big.to(torch.uint8)),
        T(big[1:].to(torch.uint8)),
        T(big[::2].to(torch.uint8)),
        T(x.double().to(torch.int8)),
        T(x.bfloat16().to(torch.uint8)),
    ]
