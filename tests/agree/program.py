"""A call through the public API as data: which functions, in which order, on which values.

`trace` watches a Python callable under upstream and writes down the outermost public calls; `run` repeats them under
any torch. What upstream's samples call through wrappers and lambdas thus reaches a torch that knows nothing of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from wire import Reader, Unsent, Writer

ROOTS = {"torch": torch}


def resolve(path: str) -> Any:
    """The object at a dotted path under torch."""
    first, *rest = path.split(".")
    found = ROOTS[first]
    for part in rest:
        found = getattr(found, part)
    return found


def path_of(function: Any) -> str:
    """The public path of a function that __torch_function__ was given."""
    from torch.overrides import resolve_name

    name = resolve_name(function)
    if name is None and getattr(function, "__name__", ""):
        name = f"{getattr(function, '__module__', 'torch')}.{function.__name__}"
    if not name:
        raise Unsent(f"a call of {function!r}")
    if name.startswith("torch._VariableFunctions."):
        name = "torch." + name.rpartition(".")[2]
    try:
        resolve(name)
    except (AttributeError, KeyError):
        raise Unsent(f"a call of {name}") from None
    return name


class _Trace(torch.overrides.TorchFunctionMode):
    """Records calls. Values are captured before each call, since a call may write to its arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.writer = Writer()
        self.writer.replace = self._name
        self.inputs: list[Any] = []
        self.calls: list[dict[str, Any]] = []
        self._names: dict[int, Any] = {}
        self._alive: list[Any] = []
        self.last: Any = None
        self.failure: Unsent | None = None

    def _name(self, t: torch.Tensor) -> Any:
        if id(t) not in self._names:
            self.inputs.append(self.writer.tensor(t))
            self._alive.append(t)
            self._names[id(t)] = {"$": "input", "i": len(self.inputs) - 1}
        return self._names[id(t)]

    def _results(self, value: Any, call: int, path: list[int]) -> bool:
        if isinstance(value, torch.Tensor):
            self._names.setdefault(id(value), {"$": "result", "i": call, "p": path})
            self._alive.append(value)
            return True
        if isinstance(value, (list, tuple)):
            return any([self._results(x, call, [*path, i]) for i, x in enumerate(value)])
        return False

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = path_of(function)
        call: dict[str, Any] | None = None
        try:
            call = {"f": name, "a": [self.writer.value(x) for x in args]}
            call["k"] = {k: self.writer.value(x) for k, x in kwargs.items()}
        except Unsent as error:
            self.failure = self.failure or error
        self.calls.append(call or {"f": name, "a": [], "k": {}})
        self.last = None
        result = function(*args, **kwargs)
        if not self._results(result, len(self.calls) - 1, []) and name.endswith(".__get__"):
            self.calls.pop()  # shape, dtype, ...: a value that the trace holds already
        self.last = result
        return result


def trace(call: Callable[[], Any]) -> tuple[dict[str, Any], bytes]:
    """The program of a callable, and its blob. Raises Unsent where no program can say what it does."""
    mode = _Trace()
    result: Any = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with mode:
                result = call()
            raised = False
        except Unsent:
            raise
        except Exception:
            raised = True
    if mode.failure:
        raise mode.failure
    if not mode.calls:
        raise Unsent("no public call")
    if raised or result is mode.last:
        returns: Any = {"$": "result", "i": len(mode.calls) - 1, "p": []}
    else:
        before = len(mode.inputs)
        returns = mode.writer.value(result)
        if len(mode.inputs) != before:
            raise Unsent("a result that no public call made")
    return {"calls": mode.calls, "inputs": mode.inputs, "returns": returns}, bytes(mode.writer.blob)


class Run:
    """One run of a program: its inputs as built, and what came out."""

    def __init__(self, program: dict[str, Any], blob: bytes, wider: bool = False, grad: bool = False) -> None:
        self.program = program
        self.reader = Reader(blob, wider)
        self.inputs = [self.reader.value(x) for x in program["inputs"]]
        if grad:
            self.inputs = [x.detach().requires_grad_() if x.is_floating_point() or x.is_complex() else x for x in self.inputs]
        self.results: list[Any] = []
        self.reader.lookup = self._lookup

    def _lookup(self, v: dict[str, Any]) -> Any:
        if v["$"] == "input":
            return self.inputs[v["i"]]
        if v["$"] != "result":
            raise ValueError(f"wire: expected a known kind of value, got {v['$']!r}")
        found = self.results[v["i"]]
        for step in v["p"]:
            found = found[step]
        return found

    def __call__(self) -> Any:
        for call in self.program["calls"]:
            args = [self.reader.value(x) for x in call["a"]]
            kwargs = {k: self.reader.value(x) for k, x in call["k"].items()}
            self.results.append(resolve(call["f"])(*args, **kwargs))
        return self.reader.value(self.program["returns"])


def outcome(
    program: dict[str, Any], blob: bytes, wider: bool = False, watch: Callable[[Callable[[], Any]], Any] = lambda call: call()
) -> tuple[dict[str, Any], bytes, bool]:
    """Runs a program and says what happened: (document, blob, whether widening changed anything).

    The document holds the result or the error, the inputs that the call wrote to, and for each tensor of the result the
    input whose memory it shares. `watch` makes the call, and nothing but the call."""
    writer, before = Writer(), Writer()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            torch.manual_seed(0)
            run = Run(program, blob, wider)
            for x in run.inputs:
                before.storage(x)
        except Exception as error:
            return raised(error) | {"stage": "inputs"}, b"", False
        try:
            result = watch(run)
        except Exception as error:
            return raised(error), b"", run.reader.widened
        owners = {x.untyped_storage()._cdata: i for i, x in reversed(list(enumerate(run.inputs)))}
        shares: list[int] = []

        def note(t: torch.Tensor) -> None:
            strided = t.layout is torch.strided and t.numel()
            shares.append(owners.get(t.untyped_storage()._cdata, -1) if strided else -1)

        writer.replace = note
        document: dict[str, Any] = {"value": writer.value(result), "shares": shares}
        writer.replace = lambda t: None
        document["changed"] = {str(i): writer.tensor(x) for i, x in enumerate(run.inputs) if written(x, before)}
    return document, bytes(writer.blob), run.reader.widened


def raised(error: Exception) -> dict[str, Any]:
    kind = type(error)
    refused = isinstance(error, NotImplementedError) and str(error).startswith("torchnative: ")
    return {"raises": f"{kind.__module__}.{kind.__qualname__}", "message": str(error)[:500], "refused": refused}


def written(x: torch.Tensor, before: Writer) -> bool:
    """Whether an input's storage differs from its bytes before the call."""
    start, n = before.storage(x)
    now = Writer()
    now.storage(x)
    return bytes(now.blob) != bytes(before.blob[start : start + n])
