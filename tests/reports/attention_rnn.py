"""Attention with masks, the transformer fast path, recurrent layers with packed sequences."""

import math

from canonical import V, case, data, num, vals

inf, nan = math.inf, math.nan


def _qkv(L=3, S=4, H=2, E=4, B=1):
    return data((B, H, L, E)), data((B, H, S, E), b=1.0), data((B, H, S, E), b=2.0)


def _ref(q, k, v, mask=None, causal=False, scale=None):
    """Attention in plain Python over nested lists; a row with nothing to see is zero."""
    E = len(q[0])
    sc = scale or 1 / math.sqrt(E)
    out = []
    for i, qi in enumerate(q):
        s = []
        for j, kj in enumerate(k):
            x = sum(a * b for a, b in zip(qi, kj)) * sc
            if mask is not None:
                x = x + mask[i][j] if not isinstance(mask[i][j], bool) else (x if mask[i][j] else -inf)
            if causal and j > i:
                x = -inf
            s.append(x)
        m = max(s)
        e = [0.0 if m == -inf else math.exp(x - m) for x in s]
        t = sum(e)
        p = [x / t if t else 0.0 for x in e]
        out.append([sum(pj * vj[d] for pj, vj in zip(p, v)) for d in range(len(v[0]))])
    return out


def _pl(shape, b):
    n = 1
    for s in shape:
        n *= s
    f = [math.sin(0.7 * i + b + 0.013 * i * i) for i in range(n)]
    B, H, L, E = shape
    return [
        [[f[((x * H + h) * L + l) * E : ((x * H + h) * L + l) * E + E] for l in range(L)] for h in range(H)] for x in range(B)
    ]


MK = [[True, False, True, True], [False] * 4, [False, True, False, False]]


@case(
    "attention rows with every key masked give zeros, for bool and -inf masks, one and many heads",
    "pytorch/pytorch#103963",
    rtol=1e-4,
    atol=1e-6,
    right=lambda: V(
        [[_ref(_pl((1, 2, 3, 4), 0.3)[0][h], _pl((1, 2, 4, 4), 1.0)[0][h], _pl((1, 2, 4, 4), 2.0)[0][h], MK) for h in (0, 1)]]
        * 3
    ),
)
def sdpa_masked_rows():
    import torch

    F = torch.nn.functional
    q, k, v = _qkv()
    m = torch.tensor(MK)
    f = torch.zeros(3, 4).masked_fill(~m, -inf)
    return [
        vals(F.scaled_dot_product_attention(q, k, v, attn_mask=m)[0]),
        vals(F.scaled_dot_product_attention(q, k, v, attn_mask=f)[0]),
        vals(F.scaled_dot_product_attention(q, k, v, attn_mask=m.expand(1, 2, 3, 4))[0]),
    ]


def _fill(torch, m):
    with torch.no_grad():
        for i, p in enumerate(m.parameters()):
            p.copy_(data(p.shape, b=0.3 * i, scale=0.5))
    return m


@case("packed bidirectional recurrent layers equal each sequence run alone", "pytorch/pytorch#3662")
def packed_bidirectional():
    import torch
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

    x, ln = data((3, 6, 3)), [3, 6, 5]
    o = []
    for cls, kw in (
        (torch.nn.LSTM, {}),
        (torch.nn.LSTM, dict(proj_size=2)),
        (torch.nn.GRU, {}),
        (torch.nn.RNN, dict(nonlinearity="relu")),
    ):
        m = _fill(torch, cls(3, 4, 2, bidirectional=True, batch_first=True, **kw))
        p = pack_padded_sequence(x, torch.tensor(ln), batch_first=True, enforce_sorted=False)
        y, h = m(p)
        y, l = pad_packed_sequence(y, batch_first=True, padding_value=-1.0)
        ok = []
        for i, n in enumerate(ln):
            yi, hi = m(x[i : i + 1, :n])
            a, b = (h[0], hi[0]) if isinstance(h, tuple) else (h, hi)
            ok.append(
                [
                    torch.allclose(y[i, :n], yi[0], atol=1e-5),
                    torch.allclose(a[:, i], b[:, 0], atol=1e-5),
                    bool((y[i, n:] == -1).all()),
                ]
            )
        o.append([ok, vals(l), list(y.shape), num(round(y[0, 0, 0].item(), 5)), vals(p.batch_sizes), vals(p.sorted_indices)])
    return o
