"""Losses, attention, embeddings and recurrent layers in training, against their definitions and by differences."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.autograd import gradcheck, gradgradcheck
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

REDUCTIONS = ["none", "mean", "sum"]


def wide(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def check(f: Callable[..., Any], *inputs: torch.Tensor, twice: bool = False) -> None:
    assert gradcheck(f, inputs, check_undefined_grad=False)
    if twice:
        assert gradgradcheck(f, inputs, check_undefined_grad=False)


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy_is_its_definition(reduction: str, smoothing: float) -> None:
    x, target, weight = (
        torch.randn(5, 4, dtype=torch.float64),
        torch.tensor([1, 3, -100, 0, 3]),
        torch.rand(4, dtype=torch.float64),
    )
    found = F.cross_entropy(x, target, weight, reduction=reduction, label_smoothing=smoothing)
    losses, total = [], 0.0
    for row, t in zip(x.log_softmax(1), target.tolist(), strict=True):
        if t < 0:
            losses.append(torch.zeros((), dtype=torch.float64))
            continue
        losses.append(-(1 - smoothing) * weight[t] * row[t] - smoothing / 4 * (weight * row).sum())
        total += weight[t].item()
    every = torch.stack(losses)
    torch.testing.assert_close(found, {"none": every, "sum": every.sum(), "mean": every.sum() / total}[reduction])


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_gradients_of_losses(reduction: str) -> None:
    target, w = torch.tensor([1, 0, 2, -100, 2]), torch.rand(3, dtype=torch.float64)
    check(lambda x: F.cross_entropy(x, target, w, reduction=reduction, label_smoothing=0.1), wide(5, 3), twice=True)
    check(lambda x, y: F.cross_entropy(x, y.softmax(-1), w, reduction=reduction), wide(5, 3), wide(5, 3), twice=True)
    for f in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss, F.kl_div):
        check(lambda x, y, f=f: f(x, y.sigmoid(), reduction=reduction), wide(4, 3), wide(4, 3), twice=f is not F.kl_div)
    check(
        lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.sigmoid(), reduction=reduction), wide(4, 3), wide(4, 3), twice=True
    )
    check(lambda x, y: F.binary_cross_entropy_with_logits(x, y, w, reduction=reduction, pos_weight=w), wide(4, 3), wide(4, 3))
    check(lambda x: F.multi_margin_loss(x, target[:3], p=2, margin=0.7, weight=w, reduction=reduction), wide(3, 3))
    labels = torch.tensor([[0, 2, -1], [1, -1, 0]])
    check(lambda x: F.multilabel_margin_loss(x, labels, reduction=reduction), wide(2, 3))
    signs = torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64)
    check(lambda x: F.soft_margin_loss(x, signs.expand(2, 3), reduction=reduction), wide(2, 3), twice=True)
    check(lambda x, y: F.margin_ranking_loss(x, y, signs, 0.2, reduction=reduction), wide(3), wide(3))
    check(lambda x, y: F.cosine_embedding_loss(x, y, signs, 0.2, reduction=reduction), wide(3, 4), wide(3, 4))
    check(lambda x, y, z: F.triplet_margin_loss(x, y, z, reduction=reduction, swap=True), wide(3, 4), wide(3, 4), wide(3, 4))
    check(lambda x: F.hinge_embedding_loss(x, signs, 0.5, reduction=reduction), wide(3))
    check(lambda x: F.poisson_nll_loss(x, torch.full((3,), 2.0, dtype=torch.float64), full=True, reduction=reduction), wide(3))
    check(lambda x, y, z: F.gaussian_nll_loss(x, y, z.exp(), reduction=reduction), wide(3), wide(3), wide(3))


def all_alignments(probs: torch.Tensor, target: list[int]) -> float:
    """The target's probability: the sum over every path of labels that collapses to it. Blank is 0."""
    steps, labels = probs.shape
    total = 0.0
    for path in itertools.product(range(labels), repeat=steps):
        collapsed = [k for k, _ in itertools.groupby(path) if k != 0]
        if collapsed == target:
            total += math.exp(sum(probs[t, k].item() for t, k in enumerate(path)))
    return total


@pytest.mark.parametrize("target", [[1, 2], [1, 1], [2], []])
def test_ctc_loss_sums_over_all_alignments(target: list[int]) -> None:
    probs = torch.randn(4, 1, 3, dtype=torch.float64).log_softmax(2)
    found = F.ctc_loss(probs, torch.tensor([target], dtype=torch.long).view(1, -1), (4,), (len(target),), reduction="none")
    assert found.item() == pytest.approx(-math.log(all_alignments(probs[:, 0], target)), rel=1e-10)


def test_gradients_of_ctc_loss() -> None:
    targets = torch.tensor([[1, 2, 2], [3, 1, 0]])
    check(lambda x: F.ctc_loss(x.log_softmax(-1), targets, torch.tensor([6, 5]), torch.tensor([3, 2])), wide(6, 2, 4))
    # A target that does not fit is infinitely unlikely, and gives nothing where that is asked for.
    x = wide(2, 1, 4)
    F.ctc_loss(x.log_softmax(-1), targets[:1], (2,), (3,), zero_infinity=True).backward()
    assert x.grad is not None and not x.grad.any()


def test_binary_cross_entropy_takes_probabilities_only() -> None:
    with pytest.raises(RuntimeError, match="all elements of input should be between 0 and 1"):
        F.binary_cross_entropy(torch.tensor([0.5, 1.5]), torch.tensor([0.0, 1.0]))


@pytest.mark.parametrize("how", [{}, {"is_causal": True}, {"scale": 0.3}, {"mask": True}, {"gqa": True}])
def test_fused_attention_has_the_gradients_of_the_composition(how: dict[str, Any]) -> None:
    heads = 2 if "gqa" in how else 4
    inputs = [wide(2, 4, 70, 8), wide(2, heads, 70, 8), wide(2, heads, 70, 8)]
    options = {k: v for k, v in how.items() if k in ("is_causal", "scale")}
    if "mask" in how:
        options["attn_mask"] = torch.rand(70, 70) > 0.3
    if "gqa" in how:
        options["enable_gqa"] = True
    direction = torch.randn(2, 4, 70, 8, dtype=torch.float64)
    results = []
    for backend, node in ((SDPBackend.FLASH_ATTENTION, "ScaledDotProductFlashAttentionForCpu"), (SDPBackend.MATH, "")):
        with sdpa_kernel(backend):
            out = F.scaled_dot_product_attention(*inputs, **options)
        assert out.grad_fn is not None and (node in out.grad_fn.name()) and (bool(node) or "Flash" not in out.grad_fn.name())
        results.append((out, *torch.autograd.grad(out, inputs, direction)))
    for fused, composed in zip(*results, strict=True):
        torch.testing.assert_close(fused, composed)


def test_attention_switches_are_read_back() -> None:
    assert torch.backends.cuda.flash_sdp_enabled() and torch.backends.cuda.math_sdp_enabled()
    with sdpa_kernel(SDPBackend.MATH):
        assert not torch.backends.cuda.flash_sdp_enabled()
    assert torch.backends.cuda.flash_sdp_enabled()


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 2])
def test_embedding_bags_are_reductions_of_rows(mode: str, padding: int | None) -> None:
    table, positions, offsets = torch.randn(6, 5), torch.tensor([0, 2, 2, 4, 5, 1]), [0, 2, 2, 5]
    found = F.embedding_bag(positions, table, torch.tensor(offsets), mode=mode, padding_idx=padding)
    for row, start, end in zip(found, offsets, [*offsets[1:], 6], strict=True):
        picked = [table[i] for i in positions[start:end].tolist() if i != padding]
        if not picked:
            assert not row.any()
            continue
        rows = torch.stack(picked)
        torch.testing.assert_close(row, {"sum": rows.sum(0), "mean": rows.mean(0), "max": rows.amax(0)}[mode])
    check(lambda w: F.embedding_bag(positions, w, torch.tensor(offsets), mode=mode, padding_idx=padding), wide(6, 5))


def test_embeddings_in_training() -> None:
    positions = torch.tensor([[0, 2, 1], [2, 3, 3]])
    check(lambda w: F.embedding(positions, w), wide(4, 3), twice=True)
    check(
        lambda w, s: F.embedding_bag(positions.view(-1), w, torch.tensor([0, 2, 2]), mode="sum", per_sample_weights=s),
        wide(4, 3),
        wide(6),
    )
    table = torch.randn(4, 3) * 5
    before = table.clone()
    F.embedding(torch.tensor([1, 3]), table, max_norm=1.0)
    torch.testing.assert_close(table[[0, 2]], before[[0, 2]])
    torch.testing.assert_close(table[[1, 3]].norm(dim=1), torch.ones(2))
    with pytest.raises(NotImplementedError, match="sparse"):
        F.embedding(positions, wide(4, 3), sparse=True).sum().backward()


def test_softmax_and_dropout_gradients() -> None:
    check(lambda x: F.softmax(x, 0), wide(3, 4, 2), twice=True)
    check(lambda x: F.log_softmax(x, 1), wide(3, 4, 2), twice=True)
    for f in (F.dropout, F.alpha_dropout, F.feature_alpha_dropout, F.dropout1d):
        check(lambda x, f=f: (torch.manual_seed(1), f(x, 0.4, training=True))[1], wide(3, 4, 5))


@pytest.mark.parametrize("layer", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_recurrent_layers_are_differentiable(layer: type[torch.nn.Module]) -> None:
    module = layer(3, 2, 2, bidirectional=True).double()
    names = [n for n, _ in module.named_parameters()]
    values = [p.detach().clone().requires_grad_() for p in module.parameters()]
    check(lambda x, *p: torch.func.functional_call(module, dict(zip(names, p, strict=True)), (x,))[0], wide(3, 2, 3), *values)


@pytest.mark.parametrize("batch_first", [False, True])
def test_packed_sequences_come_back(batch_first: bool) -> None:
    x, lengths = wide(3, 4, 2), torch.tensor([2, 4, 1])

    def there_and_back(t: torch.Tensor) -> torch.Tensor:
        packed = pack_padded_sequence(
            t if batch_first else t.transpose(0, 1), lengths, batch_first=batch_first, enforce_sorted=False
        )
        assert packed.batch_sizes.tolist() == [3, 2, 1, 1]
        padded, found = pad_packed_sequence(packed, batch_first=batch_first, padding_value=0.5)
        assert found.tolist() == lengths.tolist()
        return padded if batch_first else padded.transpose(0, 1)

    out = there_and_back(x)
    for row, kept, length in zip(out, x, lengths.tolist(), strict=True):
        torch.testing.assert_close(row[:length], kept[:length])
        assert (row[length:] == 0.5).all()
    check(there_and_back, x)
    with pytest.raises(RuntimeError, match="sorted in decreasing order"):
        pack_padded_sequence(x.transpose(0, 1), lengths)
