"""What a run does, seen at the one door that every operator call passes.

Example::

    with observe.record() as run:
        out = model(ids)
    run.ops  # ["aten::embedding", "aten::add.Tensor", ...]
    (again,) = run.replay(outputs=[out])  # the same bits, without the model's Python
    (other,) = run.replay(outputs=[out], inputs={ids: ids2})
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch._C import _torchnative  # type: ignore[attr-defined]


class Run:
    """A recorded run: its calls at the outermost level, in order. It keeps every tensor that it saw alive."""

    def __init__(self) -> None:
        self._recorder = _torchnative.Recorder()

    def __len__(self) -> int:
        return len(self._recorder)

    @property
    def ops(self) -> list[str]:
        """Qualified names of the operators in the order of their calls, e.g. ``aten::add.Tensor``."""
        return list(self._recorder.ops())

    def counts(self) -> Counter[str]:
        """How often each operator was called."""
        return Counter(self.ops)

    def replay(
        self, outputs: Sequence[torch.Tensor], inputs: Mapping[torch.Tensor, torch.Tensor] | None = None
    ) -> list[torch.Tensor]:
        """Runs the calls again and returns what now stands for ``outputs``, tensors of the recorded run.

        ``inputs`` maps tensors that the run used, but did not make, to others of the same shape and dtype. Tensors that
        are not replaced keep the values that they have now; a run that changed its own inputs in place starts from those.

        Raises RuntimeError if a tensor was not part of the run, or if something wrote to a tensor without an operator
        (``map_``, ``apply_``), so that the list of calls isn't the whole run.
        """
        return list(self._recorder.replay(list((inputs or {}).items()), list(outputs)))


@contextlib.contextmanager
def record() -> Iterator[Run]:
    """Records the operator calls of the process while the context is open. One recording at a time, else RuntimeError."""
    run = Run()
    run._recorder.attach()
    try:
        yield run
    finally:
        run._recorder.detach()
