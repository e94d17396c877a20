"""What a node keeps, seen from Python: _saved_* as values, _raw_saved_* as SavedTensor."""

import pytest
import torch


def test_tensors_and_numbers() -> None:
    x = torch.randn(2, 3, requires_grad=True)
    y = (x * x).sum(dim=1, keepdim=True)
    assert y.grad_fn._saved_dim == (1,) and y.grad_fn._saved_keepdim is True
    assert y.grad_fn._saved_self_sym_sizes == (2, 3)
    product = x.mul(x)
    assert torch.equal(product.grad_fn._saved_self, x)
    e = x.exp()
    assert torch.equal(e.grad_fn._saved_result, e) and e.grad_fn._saved_result.grad_fn is e.grad_fn
    c = x.clamp(min=0.5)
    assert c.grad_fn._saved_min == 0.5 and c.grad_fn._saved_max is None
    parts = torch.cat([x, x])
    assert parts.grad_fn._saved_dim == 0


def test_freed_tensors_say_so() -> None:
    x = torch.randn(3, requires_grad=True)
    y = x.exp()
    y.sum().backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        _ = y.grad_fn._saved_result


def test_hooks_on_one_saved_tensor() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    y.grad_fn._raw_saved_self.register_hooks(lambda t: 2 * t.detach(), lambda t: t)
    assert y.grad_fn._saved_self.tolist() == [2, 4]
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [1 + 2, 2 + 4]
    with pytest.raises(RuntimeError, match="already been set"):
        z = x * x
        z.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
        z.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)


def test_node_classes_are_nodes() -> None:
    x = torch.ones(2, requires_grad=True)
    assert isinstance(x.exp().grad_fn, torch.autograd.graph.Node)
    assert type(x.exp().grad_fn) is torch._C._functions.ExpBackward0


def test_hooks_pushed_in_a_backward_end_with_it() -> None:
    x = torch.ones(2, requires_grad=True)
    inner = torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)

    def unpack(t: torch.Tensor) -> torch.Tensor:
        inner.__enter__()
        return t

    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        y = x.exp()
    y.sum().backward()
    assert torch._C._autograd._top_saved_tensors_default_hooks(False) is None


def test_variable_is_a_detached_tensor() -> None:
    x = torch.ones(2, requires_grad=True)
    v = torch.autograd.Variable(x * 2, requires_grad=True)
    assert v.is_leaf and v.requires_grad and isinstance(v, torch.Tensor)
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got list"):
        torch.autograd.Variable([1.0])


def test_inference_tensors_are_written_in_inference_mode_alone() -> None:
    with torch.inference_mode():
        x = torch.ones(2)
        x.add_(1)
    assert x.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode is not allowed"):
        x.add_(1)
