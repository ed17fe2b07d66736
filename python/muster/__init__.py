# SPDX-License-Identifier: BSD-3-Clause
"""Muster's barrier for Python, and its results as data frames."""

from threading import BrokenBarrierError

from . import _barrier
from .results import read_results, run

__all__ = ["Barrier", "BrokenBarrierError", "read_results", "run"]


class Barrier(_barrier.Barrier):
    """In place of threading.Barrier and multiprocessing.Barrier: of threads, processes, or both.

    parties   how many pass together, 1 to 65535
    action    called by the last to come, before anybody passes; if it raises, the barrier breaks
    timeout   what waits take that say none, seconds
    name      processes of the same user that give the same name get the same barrier, for as long
              as the process that came first keeps it; 1 to 64 of [A-Za-z0-9._-]

    Children that are forked have it; others get it as an argument of multiprocessing's Process or
    Pool, or by its name. Nothing appears in the file system. Thread-safe.

    Raises ValueError for bad arguments, MemoryError, OSError.
    """

    def __init__(self, parties, action=None, timeout=None, *, name=None, _fd=-1):
        super().__init__(parties, action, timeout, name=name, fd=_fd)
        self._arguments = (parties, action, timeout)

    def __reduce__(self):
        from multiprocessing import reduction

        return _rebuild, (reduction.DupFd(self._fd), type(self), self._arguments), self.__dict__

    def __repr__(self):
        state = "broken" if self.broken else f"waiters={self.n_waiting}/{self.parties}"
        kind = type(self)
        return f"<{kind.__module__}.{kind.__qualname__} at {id(self):#x}: {state}>"


def _rebuild(descriptor, kind, arguments):
    import os

    fd = descriptor.detach()
    try:
        barrier = kind.__new__(kind)
        Barrier.__init__(barrier, *arguments, _fd=fd)  # a subclass may take others
        return barrier
    finally:
        os.close(fd)
