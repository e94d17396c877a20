"""torch.fx on the C++ nodes: list order, uses, argument maps. Expected values are upstream's."""

import copy
import gc
import pickle
import random
import weakref
from collections import namedtuple

import pytest
import torch
from torch import fx
from torch._C import _fx_map_aggregate, _fx_map_arg, _NodeBase
from torch.fx.immutable_collections import immutable_dict, immutable_list


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 4)

    def forward(self, x):
        y = torch.relu(self.linear(x)) + 1
        return {"first": y[:, 0:2], "both": (y, [torch.neg(y)])}


def names(graph):
    return [node.name for node in graph.nodes]


def two_inputs():
    graph = fx.Graph()
    return graph, graph.placeholder("a"), graph.placeholder("b")


def test_fields_of_a_fresh_node():
    root = fx.Graph()._root
    assert (root._sort_key, root._args, root._erased, root._repr_fn, root.type) == ((), (), False, None, None)
    assert root.users == root._input_nodes == root.meta == {}
    assert root._prev is root and root._next is root


def test_sort_keys_of_insertions():
    graph, a, b = two_inputs()
    with graph.inserting_before(b):
        relu = graph.call_function(torch.relu, (a,))
        relu_1 = graph.call_function(torch.relu, (relu,))
    with graph.inserting_before(relu_1):
        graph.call_function(torch.relu, (a,))
        relu_3 = graph.call_function(torch.relu, (a,))
    a.prepend(relu_3)
    assert [(n.name, n._sort_key) for n in graph.nodes] == [
        ("relu_3", (-1,)),
        ("a", (0,)),
        ("relu", (0, 0)),
        ("relu_2", (0, 0, 0)),
        ("relu_1", (0, 1)),
        ("b", (1,)),
    ]
    assert a < b and b > a and a <= a and a >= a and not b < a


def test_order_survives_random_insertions():
    rng = random.Random(1)
    graph = fx.Graph()
    made = [graph.placeholder("q")]
    for _ in range(2000):
        with graph.inserting_after(rng.choice(made)):
            made.append(graph.call_function(torch.add, (rng.choice(made), [1, rng.choice(made)])))
    for _ in range(300):
        rng.choice(made).prepend(rng.choice(made))
    order = list(graph.nodes)
    assert len(order) == len(made)
    assert all(order[i] < order[i + 1] for i in range(len(order) - 1))
    assert list(reversed(graph.nodes)) == order[::-1]


def test_users_follow_arguments():
    graph, a, b = two_inputs()
    call = graph.call_function(torch.add, (a, [b, {"k": a}]), {"alpha": slice(a, None, 2)})
    assert list(call._input_nodes) == [a, b] and list(a.users) == [call] and list(b.users) == [call]
    assert type(call.args[1]) is immutable_list and type(call.args[1][1]) is immutable_dict
    assert type(call.kwargs) is immutable_dict
    call._replace_input_with(a, b)
    assert call.args == (b, [b, {"k": b}]) and call.kwargs == {"alpha": slice(b, None, 2)}
    assert (list(a.users), list(b.users), list(call._input_nodes)) == ([], [call], [b])
    call.args = ()
    call.kwargs = {}
    assert not b.users and not call._input_nodes


def test_erasing_while_iterating():
    graph = fx.Graph()
    made = [graph.placeholder(f"a{i}") for i in range(6)]
    seen = []
    for node in graph.nodes:
        seen.append(node.name)
        if node.name == "a1":
            graph.erase_node(node)
        if node.name == "a2":
            for gone in made[2:5]:
                graph.erase_node(gone)
    assert seen == ["a0", "a1", "a2", "a5"] and names(graph) == ["a0", "a5"]


def test_moving_into_another_graph_is_refused():
    _, a, _ = two_inputs()
    _, other, _ = two_inputs()
    with pytest.raises(AssertionError, match="different Graph"):
        a._prepend(other)
    with pytest.raises(TypeError, match="must be a Node"):
        a._prepend(3)


def test_map_functions():
    _, a, b = two_inputs()
    pair = namedtuple("pair", "x y")
    mapped = _fx_map_arg((a, [1, 2], {"x": b}, slice(a, 1), pair(b, 3)), lambda node: node.name)
    assert mapped == ("a", [1, 2], {"x": "b"}, slice("a", 1, None), pair("b", 3))
    assert type(mapped[1]) is immutable_list and type(mapped[2]) is immutable_dict and type(mapped[4]) is pair
    assert _fx_map_aggregate([1, (2,)], lambda leaf: leaf + 1) == [2, (3,)]
    with pytest.raises(ZeroDivisionError):
        _fx_map_aggregate({"k": [0]}, lambda leaf: 1 // leaf)


def test_a_node_without_fields_does_not_crash():
    node = _NodeBase.__new__(_NodeBase)
    with pytest.raises(AttributeError):
        _ = node._prev
    with pytest.raises(RuntimeError):
        node._update_args_kwargs((), {})
    with pytest.raises(TypeError):
        node._sort_key = 5


def test_graphs_are_collected():
    graph, a, b = two_inputs()
    call = graph.call_function(torch.add, (a, b))
    alive = weakref.ref(call)
    del graph, a, b, call
    gc.collect()
    assert alive() is None


def test_symbolic_trace_runs_copies_and_pickles():
    module = Small()
    traced = fx.symbolic_trace(module)
    traced.graph.lint()
    assert names(traced.graph) == ["x", "linear", "relu", "add", "getitem", "neg", "output"]
    x = torch.ones(2, 3)
    assert torch.equal(traced(x)["first"], module(x)["first"])
    for again in (copy.deepcopy(traced), pickle.loads(pickle.dumps(traced))):
        assert again.code == traced.code
        assert torch.equal(again(x)["both"][1][0], module(x)["both"][1][0])


def test_rewriting_a_traced_graph():
    traced = fx.symbolic_trace(Small())
    for node in list(traced.graph.nodes):
        if node.target is torch.relu:
            with traced.graph.inserting_after(node):
                new = traced.graph.call_function(torch.sigmoid, (node,))
            node.replace_all_uses_with(new, delete_user_cb=lambda user, new=new: user is not new)
    traced.graph.lint()
    traced.recompile()
    assert names(traced.graph)[2:4] == ["relu", "sigmoid"]
    assert torch.sigmoid in {node.target for node in traced.graph.nodes}
