"""Work in forked children, so that a crash or a hang costs one item and not the run."""

from __future__ import annotations

import os
import pickle
import select
import signal
import struct
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

_LEN = struct.Struct("<Q")


def _send(fd: int, value: Any) -> None:
    data = pickle.dumps(value)
    data = _LEN.pack(len(data)) + data
    while data:
        data = data[os.write(fd, data) :]


def _read(fd: int, n: int, timeout: float) -> bytes | None:
    """Exactly n bytes; None at the end of the pipe. Raises TimeoutError when nothing comes in time."""
    data = b""
    while len(data) < n:
        if not select.select([fd], [], [], timeout)[0]:
            raise TimeoutError
        more = os.read(fd, min(n - len(data), 1 << 20))
        if not more:
            return None
        data += more
    return data


def _child(fd: int, items: Sequence[Any], first: int, work: Callable[[Any], Any]) -> None:
    for i in range(first, len(items)):
        try:
            _send(fd, (i, work(items[i]), ""))
        except Exception:
            _send(fd, (i, None, traceback.format_exc()))


def each(items: Sequence[Any], work: Callable[[Any], Any], timeout: float) -> Iterator[tuple[Any, Any, str]]:
    """(item, work(item), '') in order; the last is 'crash: <signal>', 'timeout' or a traceback where work failed.

    All items share one child until it dies; the rest then goes to the next one."""
    at = 0
    while at < len(items):
        read, write = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            try:
                _child(write, items, at, work)
            finally:
                os._exit(0)
        os.close(write)
        trouble = ""
        try:
            while at < len(items):
                head = _read(read, _LEN.size, timeout)
                body = _read(read, _LEN.unpack(head)[0], timeout) if head else None
                if body is None:
                    break
                i, value, problem = pickle.loads(body)
                yield items[i], value, problem
                at = i + 1
        except TimeoutError:
            trouble = "timeout"
        os.close(read)
        if trouble:
            os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        if at < len(items):
            code = os.waitstatus_to_exitcode(status)
            name = signal.Signals(-code).name if code < 0 else f"exit {code}"
            yield items[at], None, trouble or f"crash: {name}"
            at += 1
