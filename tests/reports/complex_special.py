"""Complex functions and special functions against cmath, numpy or fixed high-precision values."""

import cmath
import math

from canonical import V, case, num, vals

inf, nan = math.inf, math.nan


@case(
    "complex sqrt and abs of very large and very small parts",
    "pytorch/pytorch#47358",
    rtol=1e-6,
    right=lambda: V(
        [cmath.sqrt(z) for z in (-1e20j, -1e20 - 4988429.2j, 1e-30 + 1e-30j)]
        + [abs(z) for z in (-1e20j, 3e19 + 4e19j, 3e-25 + 4e-25j)]
        + [5.0, cmath.sqrt(-1e300 + 1j), 5e200]
    ),
)
def complex_sqrt_abs():
    import torch

    f = torch.tensor([-1e20j, -1e20 - 4988429.2j, 1e-30 + 1e-30j] * 5, dtype=torch.complex64)
    d = torch.tensor([-1e300 + 1j, 3e200 + 4e200j], dtype=torch.complex128)
    g = torch.tensor([-1e20j, 3e19 + 4e19j, 3e-25 + 4e-25j] * 5, dtype=torch.complex64)
    return (
        [num(v) for v in f.sqrt()[-3:].tolist()]
        + [num(v) for v in g.abs()[-3:].tolist()]
        + [num(torch.tensor(3 - 4j).abs().item()), num(d.sqrt()[0].item()), num(d.abs()[1].item())]
    )


BR = [complex(-1.0, 0.0), complex(-1.0, -0.0), complex(0.0, 2.0), complex(-0.5, -1.5), complex(2.0, -0.0), complex(-2.0, 0.0)]


@case(
    "digamma: far negative, near poles, at poles, 0.1; float64 and float32",
    "pytorch/pytorch#49015",
    rtol=1e-6,
    right=lambda: [-16666645.861379756, -10.423754940411076, "nan", "-inf", "inf", -0.5772156649015329, "nan"],
)
def digamma_values():
    import torch

    x = torch.tensor([-1931.99999994, 0.1, -3.0, 0.0, -0.0, 1.0, -inf], dtype=torch.float64)
    return vals(torch.digamma(x))
