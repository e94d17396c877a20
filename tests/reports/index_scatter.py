"""Indexing, scatter and gather, embeddings."""

import math

from canonical import case, data, err, vals

inf, nan = math.inf, math.nan


@case(
    "a two-dimensional mask followed by an ellipsis, an integer, a slice or None",
    "pytorch/pytorch#70347",
    right=lambda: {"silent": [0, 2], "one": [0], "int": [0], "slice": [[0, 2]], "none": [[[0, 1, 2]]]},
)
def mask_then_more():
    import torch

    t = torch.arange(4).view(1, 2, 2)
    m = torch.tensor([[True, True]])
    u = torch.arange(2).view(1, 1, 2)
    x = torch.arange(12).reshape(2, 2, 3)
    k = torch.tensor([[True, False], [False, False]])
    return {
        "silent": vals(t[m, ..., 0]),
        "one": vals(u[torch.tensor([[True]]), ..., 0]),
        "int": vals(x[k, 0]),
        "slice": vals(x[k, ::2]),
        "none": vals(x[k, None]),
    }


@case("scatter_reduce: every mode with and without the old value, integers, empty groups", "pytorch/pytorch#142330")
def scatter_reduce_modes():
    import torch

    i, s = torch.tensor([0, 1, 0, 1, 2, 1]), torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, -6.0])
    x = torch.tensor([10.0, 20.0, 30.0, 40.0])
    out = []
    for m in ("sum", "prod", "mean", "amax", "amin"):
        for inc in (True, False):
            out.append(
                [
                    vals(x.scatter_reduce(0, i, s, m, include_self=inc)),
                    vals(x.long().scatter_reduce(0, i, s.long(), m, include_self=inc)),
                    vals(
                        x[:, None]
                        .expand(4, 2)
                        .clone()
                        .index_reduce(
                            0,
                            torch.tensor([0, 0]),
                            torch.tensor([[1.0, nan], [2.0, 3.0]]),
                            m if m != "sum" else "prod",
                            include_self=inc,
                        )
                    ),
                ]
            )
    return out + [err(lambda: x.scatter_reduce(0, i, s, "add"))]


@case(
    "embedding: the padding row gets no gradient (also over 768 look-ups); frequency scaling; sparse", "pytorch/pytorch#28716"
)
def embedding_padding():
    import torch

    F = torch.nn.functional
    w = data((5, 3)).requires_grad_()
    ix = torch.tensor([0, 1, 2, 1, 0] * 200)
    (g,) = torch.autograd.grad(F.embedding(ix, w, padding_idx=0).sum(), w)
    (h,) = torch.autograd.grad(F.embedding(ix, w, padding_idx=-1, scale_grad_by_freq=True).sum(), w)
    s = torch.nn.Embedding(4, 2, padding_idx=1, sparse=True)
    s(torch.tensor([1, 3, 3])).sum().backward()
    return [
        vals(g),
        vals(h),
        str(s.weight.grad.layout),
        vals(s.weight.grad.to_dense()),
        vals(s.weight[1]),
        err(lambda: F.embedding(torch.tensor([5]), w)),
        err(lambda: F.embedding(torch.tensor([-1]), w)),
        err(lambda: F.embedding(torch.tensor([1.0]), w)),
        list(F.embedding(torch.zeros(2, 0, dtype=torch.int64), w).shape),
        err(lambda: torch.nn.Embedding(3, 2, padding_idx=3)),
    ]
