"""Python's objects of autograd nodes: their classes outlive them."""

from __future__ import annotations

import sys

import pytest
import torch


def test_classes_of_nodes_keep_their_references() -> None:
    x = torch.ones(2, requires_grad=True)
    node_class = type((x * 2).grad_fn)
    before = sys.getrefcount(node_class)
    for _ in range(100):
        assert type((x * 2).grad_fn) is node_class
    assert sys.getrefcount(node_class) >= before


def test_a_dispatch_that_answers_none_fails_the_backward_by_name() -> None:
    class Nothing(torch.Tensor):
        @staticmethod
        def __new__(cls, elem: torch.Tensor) -> Nothing:
            made = torch.Tensor._make_wrapper_subclass(cls, elem.size(), dtype=elem.dtype)
            made.elem = elem
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            plain = [a.elem if isinstance(a, cls) else a for a in args]
            out = func(*plain, **(kwargs or {}))
            return None if func.overloadpacket.__name__ == "add" else cls(out) if isinstance(out, torch.Tensor) else out

    x = Nothing(torch.rand(2)).requires_grad_()
    assert x + 2 is None
    with pytest.raises(RuntimeError, match="but got None"):
        x.acos().sum().backward()
