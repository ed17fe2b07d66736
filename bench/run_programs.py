#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""run_programs.py <muster> [option...]: programs that are not changed, alone and under `muster run
--mutex`, by turns. Of each way the mean throughput as a multiple of the program's alone, and in
brackets the least and the greatest ratio of a turn."""

import argparse
import collections
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

REGIMES = {"quiet": "nobody else", "hogs": "a busy loop on each CPU",
           "session": "these in a session of their own",
           "quota150": "150 % of a CPU for the program", "quota50": "50 %"}
# A leader and a busy loop on each CPU, until they have lost their parent.
HOGS = """
import os, sys, time
def loop(cpu, leader):
    os.sched_setaffinity(0, {cpu})
    while os.getppid() == leader: pass
    os._exit(0)
parent, leader = os.getppid(), os.getpid()
for cpu in map(int, sys.argv[1:]):
    if os.fork() == 0: loop(cpu, leader)
while os.getppid() == parent: time.sleep(0.1)
"""
PYTHON = """
import threading
lock, total = threading.Lock(), [0]
def add():
    for _ in range(300000):
        with lock: total[0] += 1
threads = [threading.Thread(target=add) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
arguments = argparse.ArgumentParser(description=__doc__)
arguments.add_argument("muster")
arguments.add_argument("--what", default="sections,programs",
                       help="sections (a contended mutex, ten lines written in each), programs, or "
                            "programs by name")
arguments.add_argument("--regimes", default="quiet,hogs,session",
                       help="; ".join(f"{name}: {about}" for name, about in REGIMES.items())
                       .replace("%", "%%"))
arguments.add_argument("--ways", default="cna,spin-then-park", help="of muster run --mutex")
arguments.add_argument("--threads", default="1,2,8", help="of the sections")
arguments.add_argument("--seconds", type=float, default=0.2, help="of each run of the sections")
arguments.add_argument("--rounds", type=int, default=10)
arguments.add_argument("--json", metavar="FILE", help="each run's seconds, too")
options = arguments.parse_args()
cpus = [str(cpu) for cpu in sorted(os.sched_getaffinity(0))]
# A program, its Debian package, and its arguments.
Case = collections.namedtuple("Case", "name package command")


def sections():
    worker = os.path.join(os.path.dirname(os.path.abspath(options.muster)), "bench",
                          "muster-bench-run-worker")
    return [Case(f"ten lines, {threads} thread{'s' if threads != '1' else ''}", "",
                 [worker, "crowd", str(1000 * options.seconds), threads, "10"])
            for threads in options.threads.split(",")]


def programs(folder):
    """Of about a second each on two CPUs."""
    words = [bytes(random.Random(seed).choices(range(97, 123), k=2 + seed % 9))
             for seed in range(4000)]
    text = b" ".join(random.Random(1).choices(words, k=4_500_000))
    for name, size in (("long", len(text)), ("short", len(text) // 8)):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(text[:size])
    sysbench = ["sysbench", "--threads=8", "--time=0"]
    return [
        Case("sysbench mutex, 8 threads", "sysbench",
             [*sysbench, "mutex", "--mutex-num=1", "--mutex-locks=2000000", "--mutex-loops=0",
              "run"]),
        Case("sysbench threads, 8 threads", "sysbench",
             [*sysbench, "threads", "--events=1000", "run"]),
        Case("kccachetest, 4 threads", "kyotocabinet-utils",
             ["kccachetest", "order", "-th", "4", "100000"]),
        Case("pigz, 8 threads", "pigz", ["pigz", "-p8", "-c", os.path.join(folder, "long")]),
        Case("xz, 2 threads", "xz-utils",
             ["xz", "-T2", "-3", "--block-size=256KiB", "-c", os.path.join(folder, "short")]),
        Case("python3, 4 threads", "python3", ["python3", "-c", PYTHON]),
    ]


def own_group():
    """The control group of this process that can limit its CPU time: its directory and version."""
    with open("/proc/self/cgroup", encoding="ascii") as groups:
        mine = [line.strip().split(":", 2)[1:] for line in groups]
    with open("/proc/self/mountinfo", encoding="ascii") as mounts:
        mounted = [(line.split()[3:5], line.split(" - ")[1].split()) for line in mounts]
    for version, kind in ((1, "cgroup"), (2, "cgroup2")):
        has_cpu = "cpu" if version == 1 else ""
        for (top, point), (found, _, features) in mounted:
            if found != kind or has_cpu not in ["", *features.split(",")]:
                continue
            for controllers, path in mine:
                if has_cpu in controllers.split(","):
                    group = os.path.join(point, os.path.relpath(path, top))
                    return (group if path.startswith(top) else point), version
    raise OSError("no control group limits CPUs here")


def write(folder, name, value):
    with open(os.path.join(folder, name), "w", encoding="ascii") as file:
        file.write(str(value))


class Busy:
    """A regime, for as long as it is entered. `group`: the directory of what runs in it, or None.
    Raises OSError where it can't be had."""

    def __init__(self, regime):
        self.regime, self.leader, self.group = regime, None, None

    def __enter__(self):
        if self.regime.startswith("quota"):
            parent, version = own_group()
            group = os.path.join(parent, f"muster-{self.regime}-{os.getpid()}")
            os.mkdir(group)
            self.group = group
            quota_us = int(self.regime[len("quota"):]) * 1000  # of the kernel's period of 100 ms
            try:
                if version == 1:
                    write(group, "cpu.cfs_quota_us", quota_us)
                else:
                    write(group, "cpu.max", quota_us)
            except OSError:
                self.__exit__()
                raise
        elif self.regime != "quiet":
            self.leader = subprocess.Popen([sys.executable, "-c", HOGS, *cpus],
                                           start_new_session=self.regime == "session")
            time.sleep(0.3)
        return self

    def __exit__(self, *_):
        if self.group:
            os.rmdir(self.group)
            self.group = None
        if self.leader:
            self.leader.kill()
            self.leader.wait()
            time.sleep(0.1)


def seconds_of(case, way, group):
    """Of a run in that control group; of a section where it prints that."""
    words = case.command if way is None else [options.muster, "run", "--mutex", way, "--",
                                              *case.command]
    if group:
        words = ["sh", "-c", 'echo $$ > "$0" && exec "$@"', os.path.join(group, "cgroup.procs"),
                 *words]
    begin = time.perf_counter()
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    taken = time.perf_counter() - begin
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)} ends with status {done.returncode}: {done.stderr.decode()}")
    return taken if case.package else 1e-9 * float(done.stdout)


class Progress:
    def __init__(self, runs):
        self.runs, self.done, self.begin = runs, 0, time.monotonic()

    def step(self, text):
        self.done += 1
        left = (time.monotonic() - self.begin) / self.done * (self.runs - self.done)
        line = f"{self.done} of {self.runs} runs, {left:.0f} s left: {text}"
        if sys.stderr.isatty():
            print("\r" + line[:79].ljust(79), end="\r", file=sys.stderr, flush=True)
        elif self.done % max(1, self.runs // 10) == 0:
            print(line, file=sys.stderr, flush=True)


def compare(case, ways, progress, group):
    """The seconds of all ways, by turns, another one being the first each time."""
    taken = {way: [] for way in ways}
    for turn in range(options.rounds):
        for i in range(len(ways)):
            way = ways[(turn + i) % len(ways)]
            taken[way].append(seconds_of(case, way, group))
            progress.step(case.name)
    return taken


def chosen(cases):
    what = options.what.split(",")
    return [case for case in cases
            if ("programs" if case.package else "sections") in what or
            case.command[0] in what] or sys.exit(f"--what: nothing is called {options.what}")


def sessions_are_groups():
    try:
        with open("/proc/sys/kernel/sched_autogroup_enabled", encoding="ascii") as setting:
            return setting.read(1) == "1"
    except OSError:
        return False


def stolen():
    """Of all CPUs' time, what a hypervisor took."""
    with open("/proc/stat", encoding="ascii") as stat:
        ticks = list(map(int, stat.readline().split()[1:9]))
    return ticks[7], sum(ticks)


def main():
    folder = tempfile.mkdtemp()
    try:
        cases = chosen(sections() + programs(folder))
        there = [case for case in cases if shutil.which(case.command[0])]
        left_out = [f"{case.name} (package {case.package})" for case in cases if case not in there]
        ways = [None, *options.ways.split(",")]
        regimes = options.regimes.split(",")
        if not set(regimes) <= set(REGIMES):
            sys.exit(f"--regimes: there are {', '.join(REGIMES)}")
        if "session" in regimes and not sessions_are_groups():
            sys.exit("kernel.sched_autogroup_enabled is not 1: sessions are no groups here")
        progress = Progress(len(there) * len(ways) * len(regimes) * options.rounds)
        before, results = stolen(), []
        print(f"{'':36}" + "".join(f"{way:>22}" for way in ways[1:]))
        for regime in regimes:
            for case in there:
                try:
                    with Busy(regime) as busy:
                        taken = compare(case, ways, progress, busy.group)
                except OSError as error:
                    left_out.append(f"{case.name}, {regime} ({error})")
                    continue
                speeds = {way: [1 / one for one in all_of] for way, all_of in taken.items()}
                texts = []
                for way in ways[1:]:
                    ratios = [own / alone for own, alone in zip(speeds[way], speeds[None])]
                    mean = statistics.mean(speeds[way]) / statistics.mean(speeds[None])
                    texts.append(f"{mean:.2f} [{min(ratios):.2f}, {max(ratios):.2f}]")
                    results.append({"program": case.name, "regime": regime, "way": way,
                                    "ratio": mean, "least": min(ratios), "greatest": max(ratios),
                                    "seconds": taken[way], "alone": taken[None]})
                print(f"{case.name + ', ' + regime:36}" +
                      "".join(f"{text:>22}" for text in texts), flush=True)
        took, total = (now - then for now, then in zip(stolen(), before))
        print(f"a hypervisor took {100 * took / max(1, total):.1f} % of the CPUs' time")
        print(f"left out: {len(left_out)}" + "".join(f"; {one}" for one in left_out))
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump({"command": sys.argv, "rounds": options.rounds, "cpus": len(cpus),
                           "stolen": took / max(1, total), "left_out": left_out,
                           "results": results}, file, indent=1)
    finally:
        shutil.rmtree(folder)


main()
