"""Autocast on the CPU: policies, nesting, the cache of casts, gradients, custom functions; and nothing of it when it is off."""

import pathlib

import pytest
import torch
import yaml
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

POLICIES = yaml.safe_load((pathlib.Path(__file__).parents[2] / "codegen" / "autocast.yaml").read_text())


class Calls(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.__name__.split(".")[0])
        return func(*args, **(kwargs or {}))


def test_listed_operators_have_kernels_and_others_fall_through():
    listed = [op for ops in POLICIES.values() for op in ops]
    assert len(listed) == len(set(listed)) == 127  # upstream 2.13.0's number
    for op in listed:
        assert torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{op}", "AutocastCPU"), op
    assert not torch._C._dispatch_has_kernel_for_dispatch_key("aten::add.Tensor", "AutocastCPU")


def test_policies():
    x, y = torch.randn(3, 4), torch.randn(3, 4, dtype=torch.bfloat16)
    with torch.autocast("cpu"):
        assert torch.mm(x, x.t()).dtype == torch.bfloat16
        assert F.linear(x, x).dtype == torch.bfloat16
        assert F.mse_loss(y, y).dtype == torch.float32
        assert torch.cat([x, y]).dtype == torch.float32
        assert torch.cat([y, y]).dtype == torch.bfloat16
        assert (y + y).dtype == torch.bfloat16
        assert torch.mm(x.double(), x.double().t()).dtype == torch.float64
        assert torch.softmax(y, -1).dtype == torch.bfloat16
    with torch.autocast("cpu", dtype=torch.float16):
        assert torch.mm(x, x.t()).dtype == torch.float16
    assert torch.mm(x, x.t()).dtype == torch.float32


def test_values_are_those_of_an_explicit_cast():
    layer, x = torch.nn.Linear(5, 4), torch.randn(3, 5)
    with torch.autocast("cpu"):
        found = layer(x)
    assert torch.equal(found, F.linear(x.bfloat16(), layer.weight.bfloat16(), layer.bias.bfloat16()))


def test_nesting_and_state():
    x = torch.randn(2, 2)
    assert not torch.is_autocast_enabled("cpu")
    with torch.autocast("cpu"):
        assert torch.is_autocast_enabled(device_type="cpu")
        assert torch.get_autocast_dtype("cpu") == torch.bfloat16
        with torch.autocast("cpu", enabled=False):
            assert not torch.is_autocast_enabled("cpu")
            assert (x @ x).dtype == torch.float32
        with torch.autocast("cpu", dtype=torch.float16):
            assert torch.get_autocast_dtype("cpu") == torch.float16
        assert torch.get_autocast_dtype("cpu") == torch.bfloat16
        assert (x @ x).dtype == torch.bfloat16
        with pytest.raises(ZeroDivisionError), torch.autocast("cpu", enabled=False):
            _ = 1 // 0
        assert torch.is_autocast_enabled("cpu")
    assert not torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("cache", [True, False])
def test_a_parameter_is_cast_once_where_the_cache_is_on(cache):
    layer, x = torch.nn.Linear(4, 4), torch.randn(2, 4)
    with Calls() as seen, torch.autocast("cpu", cache_enabled=cache):
        layer(x), layer(x)
    # x twice; weight and bias once or twice
    assert seen.names.count("_to_copy") == (4 if cache else 6)
    with Calls() as seen, torch.autocast("cpu"):
        layer(x)
    assert seen.names.count("_to_copy") == 3  # the cache ended with its context


def test_gradients_come_back_in_the_parameters_dtype():
    layer, x = torch.nn.Linear(4, 3), torch.randn(2, 4)
    with torch.autocast("cpu"):
        loss = F.cross_entropy(layer(x), torch.tensor([0, 2]))
    loss.backward()
    assert loss.dtype == layer.weight.grad.dtype == torch.float32
    plain = torch.nn.Linear(4, 3)
    plain.load_state_dict(layer.state_dict())
    F.cross_entropy(plain(x), torch.tensor([0, 2])).backward()
    assert torch.allclose(layer.weight.grad, plain.weight.grad, atol=3e-2)


def test_custom_functions():
    class Product(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx, a):
            assert not torch.is_autocast_enabled("cpu")
            ctx.save_for_backward(a)
            return a @ a.t()

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            (a,) = ctx.saved_tensors
            return 2 * grad @ a

    a = torch.randn(3, 3, dtype=torch.bfloat16, requires_grad=True)
    with torch.autocast("cpu"):
        out = Product.apply(a)
    assert out.dtype == torch.float32
    out.sum().backward()
    assert a.grad.dtype == torch.bfloat16


def test_widening_refuses_two_narrow_types():
    with torch.autocast("cpu"), pytest.raises(RuntimeError, match="Unexpected floating ScalarType"):
        torch.cat([torch.ones(1, dtype=torch.float16), torch.ones(1, dtype=torch.float16)])
