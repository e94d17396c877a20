"""Loaders with worker processes, tensors that processes share, and threads on both sides of a fork."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info

WAIT = 60
STRATEGIES = ["file_descriptor", "file_system"] if sys.platform == "linux" else ["file_system"]
# A spawned process imports torch anew, which costs seconds: one strategy is enough there.
WAYS = [("fork", s) for s in STRATEGIES] + [("spawn", STRATEGIES[0])]


@pytest.fixture(params=WAYS, ids="-".join)
def method(request: Any) -> Any:
    method, strategy = request.param
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy(strategy)
    yield method
    mp.set_sharing_strategy(before)


class Rows(Dataset[Any]):
    """Each row says who read it and with how many threads, and costs a product, which uses the pool where there is one."""

    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    def __len__(self) -> int:
        return 8

    def __getitem__(self, i: int) -> dict[str, Any]:
        info = get_worker_info()
        # The first row, so that nothing that a dead worker sent is on its way.
        if info is not None and i == 0 and self.fault:
            if self.fault == "raise":
                raise KeyError("the first row")
            os.kill(os.getpid(), getattr(signal, self.fault))
        product = torch.full((200, 200), 0.5) @ torch.full((200, 200), float(i))
        worker, seed = (info.id, info.seed) if info is not None else (-1, 0)
        return {"row": i, "sum": product.sum(), "worker": worker, "seed": seed, "threads": torch.get_num_threads(),
                "draw": torch.rand(())}  # fmt: skip


class Count(IterableDataset[int]):
    def __iter__(self) -> Any:
        info = get_worker_info()
        return iter(range(info.id, 7, info.num_workers))


def warm_pool() -> None:
    """The parent's pool has its threads before the fork: a child must not wait for them."""
    (torch.ones(400, 400) @ torch.ones(400, 400)).exp_()


def test_workers_read_what_the_process_itself_reads(method: str) -> None:
    warm_pool()
    torch.manual_seed(3)
    alone = list(DataLoader(Rows(), batch_size=2))
    torch.manual_seed(3)
    found = list(DataLoader(Rows(), batch_size=2, num_workers=2, multiprocessing_context=method))
    assert [b["row"].tolist() for b in found] == [b["row"].tolist() for b in alone]
    assert all(torch.equal(a["sum"], b["sum"]) for a, b in zip(alone, found, strict=True))
    assert [b["worker"].tolist() for b in found] == [[0, 0], [1, 1], [0, 0], [1, 1]]
    assert {t for b in found for t in b["threads"].tolist()} == {1}
    assert all(b["sum"].is_shared() for b in found)
    # A worker's seed is the loader's plus its number; so are its draws.
    seeds = {w: s for b in found for w, s in zip(b["worker"].tolist(), b["seed"].tolist(), strict=True)}
    assert seeds[1] == seeds[0] + 1
    torch.manual_seed(seeds[1])
    draws = [x for b in found for w, x in zip(b["worker"].tolist(), b["draw"].tolist(), strict=True) if w == 1]
    assert draws == torch.stack([torch.rand(()) for _ in draws]).tolist()


def test_shuffled_epochs_repeat_from_a_seed() -> None:
    def epochs() -> list[list[int]]:
        loader = DataLoader(TensorDataset(torch.arange(20)), 4, shuffle=True, num_workers=2, persistent_workers=True,
                            generator=torch.Generator().manual_seed(7))  # fmt: skip
        return [[x for (b,) in loader for x in b.tolist()] for _ in range(2)]

    first = epochs()
    assert first == epochs() and first[0] != first[1] and all(sorted(e) == list(range(20)) for e in first)


def test_iterable_data_is_split_between_workers() -> None:
    assert sorted(x for b in DataLoader(Count(), 2, num_workers=2) for x in b.tolist()) == list(range(7))


def test_an_exception_of_a_worker_arrives_as_it_was() -> None:
    with pytest.raises(KeyError, match="Caught KeyError in DataLoader worker process"):
        list(DataLoader(Rows("raise"), num_workers=1, timeout=WAIT))


@pytest.mark.parametrize(("fault", "named"), [("SIGKILL", "Killed"), ("SIGTERM", "Terminated")])
def test_a_worker_that_dies_is_an_error(fault: str, named: str) -> None:
    with pytest.raises(RuntimeError, match=rf"DataLoader worker \(pid.*(killed by signal: {named}|exited unexpectedly)"):
        list(DataLoader(Rows(fault), num_workers=1, timeout=WAIT))


def echo(inbox: Any, outbox: Any, shared: torch.Tensor) -> None:
    shared.add_(1)
    x = inbox.get(timeout=WAIT)
    x.mul_(2)
    view = torch.arange(12.0).view(3, 4).t()[1:]
    outbox.put((x.sum(), view, torch.nn.Parameter(torch.ones(3)), torch.tensor([], dtype=torch.int8)))
    weight = torch.ones(300, 300, requires_grad=True)
    (weight @ weight).sum().backward()
    outbox.put(weight.grad)
    inbox.get(timeout=WAIT)  # the sender of a descriptor lives until it was read


def test_processes_share_memory(method: str) -> None:
    warm_pool()
    context: Any = mp.get_context(method)
    there, back = context.Queue(), context.Queue()
    shared, sent = torch.zeros(4).share_memory_(), torch.arange(4.0)
    child = context.Process(target=echo, args=(there, back, shared))
    child.start()
    there.put(sent)
    total, view, parameter, empty = back.get(timeout=WAIT)
    gradient = back.get(timeout=WAIT)
    there.put(None)
    child.join(WAIT)
    assert child.exitcode == 0
    assert shared.tolist() == [1] * 4 and sent.tolist() == [0, 2, 4, 6] and sent.is_shared()
    assert total == 12 and view.tolist() == [[1, 5, 9], [2, 6, 10], [3, 7, 11]] and view.stride() == (1, 4)
    assert isinstance(parameter, torch.nn.Parameter) and parameter.requires_grad and parameter.is_leaf
    assert empty.numel() == 0 and empty.dtype == torch.int8
    assert torch.equal(gradient, torch.full((300, 300), 600.0))


def test_sharing_moves_the_whole_storage_once() -> None:
    x = torch.arange(6.0)
    y = x[2:]
    assert not x.is_shared()
    assert y.share_memory_() is y and x.is_shared() and x.tolist() == [0, 1, 2, 3, 4, 5]
    address = x.data_ptr()
    x.share_memory_()
    assert x.data_ptr() == address and y.data_ptr() == address + 8
    with pytest.raises(RuntimeError, match="resiz"):
        x.untyped_storage().resize_(1000)
    model = torch.nn.Linear(2, 2).share_memory()
    assert all(p.is_shared() for p in model.parameters())


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="where named objects can be seen")
def test_names_go_with_their_last_user() -> None:
    s = torch.UntypedStorage._new_using_filename_cpu(64)
    _, name, size = s._share_filename_cpu_()
    path = Path("/dev/shm") / os.fsdecode(name).lstrip("/")
    assert path.exists() and size == 64
    other = torch.UntypedStorage._new_shared_filename_cpu(b"", name, size)
    other[3] = 7
    assert s[3] == 7
    del s
    assert path.exists()
    del other
    assert not path.exists()


def hogwild(seed: int, model: torch.nn.Module) -> None:
    torch.manual_seed(seed)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(60):
        x = torch.randn(16, 2)
        optimiser.zero_grad()
        torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
        optimiser.step()


def test_processes_train_one_model() -> None:
    warm_pool()
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 1).share_memory()
    mp.start_processes(hogwild, args=(model,), nprocs=2, start_method="fork")
    assert torch.allclose(model.weight, torch.ones(1, 2), atol=0.05)


def test_pinning_without_an_accelerator() -> None:
    assert not torch.ones(2).is_pinned()
    with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available"):
        torch.ones(2).pin_memory()
    with pytest.warns(UserWarning, match="pin_memory"):
        (batch,) = DataLoader(TensorDataset(torch.arange(2)), 2, pin_memory=True)
    assert not batch[0].is_pinned() and batch[0].tolist() == [0, 1]
