#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Episodes of muster.Barrier beside multiprocessing.Barrier and threading.Barrier, by turns; of
each the mean of a run, and of the runs the median and the range, in microseconds; the same of the
ratios of two that ran one after the other."""

import argparse
import multiprocessing
import statistics
import threading
import time

import muster

arguments = argparse.ArgumentParser(description=__doc__)
arguments.add_argument("--participants", default="2,4,8")
arguments.add_argument("--rounds", type=int, default=9)
arguments.add_argument("--seconds", type=float, default=0.2, help="of each run")
options = arguments.parse_args()
context = multiprocessing.get_context("fork")


def take_part(barrier, stop, told):
    """All leave after the same episode: stop is set before the barrier that all see it after."""
    for _ in range(20):
        barrier.wait()
    begin = time.perf_counter()
    episodes = 0
    while True:
        late = time.perf_counter() - begin > options.seconds
        place = barrier.wait()
        episodes += 1
        if place == 0 and late:
            stop.value = 1
        if episodes % 8 == 0:
            barrier.wait()
            episodes += 1
            if stop.value:
                break
    told.append((time.perf_counter() - begin) / episodes * 1e6)


def take_part_and_send(barrier, stop, queue):
    told = []
    take_part(barrier, stop, told)
    queue.put(told[0])


def of_processes(make, participants):
    queue, stop = context.SimpleQueue(), context.Value("i", 0)
    barrier = make(participants)
    children = [context.Process(target=take_part_and_send, args=(barrier, stop, queue))
                for _ in range(participants)]
    for child in children:
        child.start()
    times = [queue.get() for _ in children]
    for child in children:
        child.join()
    return statistics.mean(times)


class Flag:
    value = 0


def of_threads(make, participants):
    told, stop = [], Flag()
    barrier = make(participants)
    threads = [threading.Thread(target=take_part, args=(barrier, stop, told))
               for _ in range(participants)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statistics.mean(told)


def text(times):
    return f"{statistics.median(times):8.2f} [{min(times):.2f}, {max(times):.2f}]"


print(f"{'':12}{'muster.Barrier':>25}{'its own':>28}{'times as fast':>28}")
for run, theirs, name in ((of_processes, context.Barrier, "processes"),
                          (of_threads, threading.Barrier, "threads")):
    for participants in map(int, options.participants.split(",")):
        ours, others = [], []
        for _ in range(options.rounds):
            ours.append(run(muster.Barrier, participants))
            others.append(run(theirs, participants))
        ratios = [other / own for own, other in zip(ours, others)]
        print(f"{participants} {name:10}{text(ours):>25}{text(others):>28}{text(ratios):>28}",
              flush=True)
