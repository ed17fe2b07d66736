#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The worker program that runs Python's multiprocessing.Barrier.

    muster-bench-python <fd>      fd: of the Control block (bench/measure.hpp)

The measured loop is the same as everyone's, in a library beside this script, and calls wait(): that
adds about a microsecond, of the tens that an episode takes.
"""
import ctypes
import multiprocessing
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
library = ctypes.CDLL(os.path.join(here, "libmuster-bench-python.so"))
Wait = ctypes.CFUNCTYPE(None)


def participate(barrier, descriptor, rank):
    wait = Wait(barrier.wait)
    os._exit(library.muster_bench_serve(descriptor, rank, wait))


def main():
    descriptor = int(sys.argv[1]) if len(sys.argv) == 2 else -1
    count = library.muster_bench_participants(descriptor)
    if count == 0:
        sys.exit("This program is started by `muster bench barrier`.")
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(count)
    ranks = [context.Process(target=participate, args=(barrier, descriptor, rank))
             for rank in range(count)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    os._exit(max(abs(rank.exitcode) for rank in ranks))


if __name__ == "__main__":
    main()
