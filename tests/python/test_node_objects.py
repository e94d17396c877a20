"""Python's objects of autograd nodes: their classes outlive them."""

from __future__ import annotations

import sys

import torch


def test_classes_of_nodes_keep_their_references() -> None:
    x = torch.ones(2, requires_grad=True)
    node_class = type((x * 2).grad_fn)
    before = sys.getrefcount(node_class)
    for _ in range(100):
        assert type((x * 2).grad_fn) is node_class
    assert sys.getrefcount(node_class) >= before
