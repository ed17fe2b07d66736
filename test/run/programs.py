#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""programs.py <muster> <case> [<program>]: other people's programs under `muster run`, with each
mutex: they do what they do alone, and the counters show that ours were at work. Exits with 77 where
the program is not installed."""

import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

MUTEXES = ["pthread", "spin-then-park", "mcs", "cna"]
# Nothing of the surroundings may matter.
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith(("MUSTER_", "LD_", "GIT_"))}
muster = sys.argv[1]
scratch = tempfile.mkdtemp()


def fail(text):
    sys.exit("FAILED: " + text)


def expect(holds, text):
    if not holds:
        fail(text)


def need(program, package=None):
    found = shutil.which(program)
    if found is None:
        print(f"skipped: package {package or program}")
        sys.exit(77)
    return found


def run(options, command, code=0, **more):
    """Runs it; what it printed and what the report says, a process each."""
    report = os.path.join(scratch, "report.json")
    words = [muster, "run", *options, "--json", report, "--", *command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=900, env=ENVIRONMENT,
                          **more)
    if done.returncode != code:
        fail(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    with open(report, encoding="utf-8") as lines:
        return done, [json.loads(line) for line in lines]


def total(processes, part, what):
    return sum(process[part][what] for process in processes)


def each_mutex(command, expected=None, locks=1, threads=1, waits=0, **more):
    """The same output as alone, with each mutex, and at least so many locks, threads and waits."""
    if expected is None:
        alone = subprocess.run(command, capture_output=True, text=True, timeout=900, check=True,
                               env=ENVIRONMENT, **more)
        expected = alone.stdout
    for mutex in MUTEXES:
        done, processes = run(["--mutex", mutex], command, **more)
        expect(done.stdout == expected, f"--mutex {mutex}: it printed\n{done.stdout}")
        for what, least, counted in [
                ("locks", locks, total(processes, "mutexes", "locks")),
                ("waits", waits, total(processes, "mutexes", "waits_for_conditions")),
                ("threads", threads, total(processes, "threads", "created"))]:
            expect(counted >= least, f"--mutex {mutex}: {counted} {what} counted, of {least}")
        placed = sum(core["threads"] for p in processes for core in p["threads"]["cores"])
        expect(placed + total(processes, "threads", "left_alone") ==
               total(processes, "threads", "created"), f"--mutex {mutex}: a thread is missing")
        print(mutex, total(processes, "mutexes", "locks"), "locks",
              total(processes, "threads", "created"), "threads")


PYTHON = """
import queue, subprocess, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
tasks, results = queue.Queue(maxsize=8), []
def work():
    while (task := tasks.get()) is not None:
        results.append(task * task)
        if task % 50 == 0:
            time.sleep(0.001)
team = [threading.Thread(target=work) for _ in range(16)]
for thread in team: thread.start()
for task in range(400): tasks.put(task)
for thread in team: tasks.put(None)
for thread in team: thread.join()
print(sum(results))
changed, there = threading.Condition(), []
def later():
    with changed:
        there.append(1)
        changed.notify_all()
with changed:
    print(changed.wait(timeout=0.01))
    threading.Timer(0.01, later).start()
    print(changed.wait_for(lambda: there, timeout=900))
with ThreadPoolExecutor(4) as pool:
    print(list(pool.map(lambda n: subprocess.run([sys.executable, "-c", f"print({n})"],
                                                 capture_output=True, text=True).stdout, range(4))))
"""

PERL = """
use threads; use threads::shared; use Thread::Queue;
my $tasks = Thread::Queue->new; my $sum :shared = 0;
my @team = map { threads->create(sub {
  while (defined(my $task = $tasks->dequeue)) { lock $sum; $sum += $task; }
}) } 1 .. 6;
$tasks->enqueue($_) for 1 .. 300;
$tasks->end; $_->join for @team;
print "$sum\\n";
"""

SQL = """
pragma threads = 4;
create table numbers(n integer, text text);
with recursive count(n) as (select 1 union all select n + 1 from count where n < 60000)
  insert into numbers select n, hex((n * 7919) % 60013) from count;
create index by_text on numbers(text, n);
select count(distinct text), sum(n) from numbers;
select n from numbers order by text desc, n limit 3;
"""


def case_python():
    python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else need("python3")
    each_mutex([python, "-c", PYTHON], threads=21, locks=20 * 400)


def case_perl():
    perl = need("perl")
    config = subprocess.run([perl, "-MConfig", "-e", "print $Config{useithreads} // q()"],
                            capture_output=True, text=True, check=True)
    if config.stdout != "define":
        print("skipped: this perl has no threads")
        sys.exit(77)
    each_mutex([perl, "-e", PERL], "45150\n", threads=6, locks=600)


def case_sqlite():
    each_mutex([need("sqlite3"), ":memory:", SQL], threads=0, locks=10_000)


def case_redis():
    """redis' own benchmark, with threads of its own, on a server with threads for its clients."""
    client = need("redis-benchmark", "redis-tools")
    # That package has the server, too: one program with several names.
    server = os.path.join(scratch, "redis-server")
    os.symlink(need("redis-check-rdb", "redis-tools"), server)
    counts = {"set": "SET", "get": "GET", "lpush": "LPUSH"}
    for mutex in MUTEXES:
        socket = mutex  # in the working directory: a socket's path has to be short
        report = os.path.join(scratch, "server.json")
        serving = subprocess.Popen(
            [muster, "run", "--mutex", mutex, "--json", report, "--", server, "--port", "0",
             "--unixsocket", socket, "--save", "", "--io-threads", "2"],
            stdout=subprocess.DEVNULL, cwd=scratch, env=ENVIRONMENT)
        try:
            for _ in range(500):
                if os.path.exists(os.path.join(scratch, socket)):
                    break
                time.sleep(0.02)
            done, processes = run(["--mutex", mutex], [
                client, "-s", socket, "-n", "4000", "-c", "16", "--threads", "2", "--csv", "-t",
                ",".join(counts)], cwd=scratch)
            rows = [line.split(",")[0].strip('"') for line in done.stdout.splitlines()]
            expect(rows[-3:] == list(counts.values()), f"--mutex {mutex}: it printed {done.stdout}")
            expect(total(processes, "threads", "created") >= 2, "no threads of the benchmark's own")
            expect(total(processes, "mutexes", "locks") >= 400, "no locks in the benchmark")
            held = subprocess.run(["redis-cli", "-s", socket, "llen", "mylist"], check=True,
                                  capture_output=True, text=True, env=ENVIRONMENT,
                                  cwd=scratch).stdout
            expect(held == "4000\n", f"--mutex {mutex}: {held} of 4000 are there")
            subprocess.run(["redis-cli", "-s", socket, "shutdown", "nosave"], check=True,
                           env=ENVIRONMENT, cwd=scratch)
            expect(serving.wait(timeout=900) == 0, f"--mutex {mutex}: the server's end")
        finally:
            serving.kill()
        with open(report, encoding="utf-8") as lines:
            processes = [json.loads(line) for line in lines]
        expect(total(processes, "threads", "created") >= 4, "the server made no threads")
        print(mutex, total(processes, "mutexes", "locks"), "locks in the server")


def case_memory():
    """malloc on the servers' NUMA node, below each mutex: everything is as it is alone."""
    python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else need("python3")
    for command in [[sys.argv[3]], [python, "-c", PYTHON]]:
        alone = subprocess.run(command, capture_output=True, text=True, timeout=900, check=True,
                               env=ENVIRONMENT).stdout
        for mutex in MUTEXES:
            done, processes = run(["--servers", "1", "--memory", "aware", "--mutex", mutex],
                                  command)
            expect(done.stdout == alone, f"--mutex {mutex}: it printed\n{done.stdout}")
            for process in processes:
                memory = process["memory"]
                expect(memory["numa_node"] >= 0 and memory["bytes"] >= 1 << 20,
                       f"--mutex {mutex}: its memory is not ours: {memory}")
                expect(memory["pages_refused"] == 0 and memory["regions_refused"] == 0 and
                       memory["threads_adrift"] == 0, f"--mutex {mutex}: {memory}")


def case_git():
    """A repository, packed and searched by threads; its hashes are what they are alone."""
    git = need("git")
    script = f"""
      set -e; export HOME=$PWD GIT_CONFIG_NOSYSTEM=1
      export GIT_AUTHOR_DATE='2020-01-01 00:00:00 +0000'
      export GIT_COMMITTER_DATE=$GIT_AUTHOR_DATE
      rm -rf it; {git} init -q it; cd it
      {git} config user.name a; {git} config user.email a@b; {git} config core.preloadIndex true
      for i in $(seq 200); do echo "line $i $((i * i))" >file$i; done
      {git} add .; {git} commit -q -m one
      for i in $(seq 100); do echo "more $i" >>file$i; done
      {git} commit -q -a -m two
      {git} -c pack.threads=4 repack -q -a -d -f; {git} fsck --no-progress
      {git} -c grep.threads=4 grep -c 'line 1.*1$' | cksum
      {git} -c index.threads=2 status --short; {git} rev-parse HEAD"""
    each_mutex(["sh", "-c", script], threads=5, locks=100, cwd=scratch)


def case_cases():
    """A C++ program: kinds, deadlines, conditions, ends, forks, 64 threads."""
    each_mutex([sys.argv[3]], "passed\n", threads=64, locks=64 * 2000, waits=2000)
    for options in ([], ["--affinity", "none"], ["--bind-main", "--servers", "1"]):
        done, _ = run(options, [sys.argv[3]])
        expect(done.stdout == "passed\n", f"{options}: {done.stdout}")
    _, processes = run(["--mutex", "mcs"], [sys.argv[3], "threads"])
    expect(total(processes, "mutexes", "slept") > 0, "64 threads, and nobody slept")
    _, processes = run(["--mutex", "cna"], [sys.argv[3], "kinds"])
    # Robust, protected, shared; and one of each kind after it was destroyed.
    expect(total(processes, "mutexes", "passed_on") == 3 + 4, "locks of the C library: others")


def places(servers, threads):
    """Where `muster place` has them: PUs of the servers' cores, and of the threads'."""
    text = subprocess.run([muster, "place", "--servers", str(servers), "--threads", str(threads),
                           "--json"], capture_output=True, text=True, check=True,
                          env=ENVIRONMENT).stdout
    return [[",".join(map(str, sorted(one["pus"]))) for one in json.loads(text)[what]]
            for what in ("servers", "threads")]


def case_servers():
    """libmuster's own threads are no workers, and workers leave the core of its server alone."""
    on, around = places(1, 5)
    for options in ([], ["--servers", "1"]):
        done, processes = run(options, [sys.argv[3], "5"])
        lines = done.stdout.split()
        expect(lines[:5] == around, f"{options}: beside the server {lines[:5]}, not {around}")
        expect(on[0] in lines[5:], f"{options}: after the server none on {on[0]}: {lines[5:]}")
        expect(total(processes, "threads", "created") == 10, "own threads are counted")


def case_contention():
    def report(*words, code=0):
        done = subprocess.run([muster, "run", "--report", *words], capture_output=True, text=True,
                              timeout=900, env=ENVIRONMENT)
        expect(done.returncode == code, f"{words} ended with {done.returncode}: {done.stderr}")
        return done

    program, file = sys.argv[3], os.path.join(scratch, "report.json")
    done = report("--json", file, "--", program)
    waited, held = map(int, done.stdout.split())
    with open(file, encoding="utf-8") as lines:
        child, parent = sorted(map(json.loads, lines), key=lambda line: line["waited"])
    hot = parent["contended"][0]
    callers = {caller["where"].split("+")[0]: caller for caller in hot["callers"]}
    expect(hot["mutex"] == "hot (run-contention)", hot["mutex"])
    expect(callers["want_it"]["waited"] == 20 and callers["hold_it"]["locks"] == 20, str(callers))
    for what, told, seen in (("waited", callers["want_it"]["waited_ns"], waited),
                             ("held", callers["hold_it"]["held_ns"], held)):
        expect(abs(told - seen) <= 0.05 * seen + 1e6, f"{what} {seen} ns, and is told of {told}")
    expect(hot["threads"] == 2 and hot["most_waiting"] == 1, str(hot))
    expect(parent["threads"] == 2 and parent["mutexes"] == 5, str(parent))
    expect(child["locks"] == 7 and child["threads"] == 1 and not child["contended"], str(child))
    for text in ("hot (run-contention): waited", "want_it", "hold_it",
                 "long sections: do less in them"):
        expect(text in done.stderr, f"it does not say {text}: {done.stderr}")
    expect(max(map(len, done.stderr.splitlines())) < 80, done.stderr)
    expect("no report" in report(program, "leave", code=3).stderr, "nothing said of _exit")
    report(program, "die", code=128 + 6)
    report("no-such-program", code=127)
    for option in ("--mutex=cna", "--servers=1", "--bind-main", "--barrier"):
        expect("watches the program as it is" in report(option, "--", program, code=2).stderr,
               f"{option} is taken")


def case_affinity():
    """Threads are where `muster place` says, and what they start is not bound."""
    affinity = sys.argv[3]
    allowed = sorted(os.sched_getaffinity(0))
    everywhere = ",".join(map(str, allowed))

    def places_of_run(servers, threads):
        """Servers' cores are the last, if nobody serves there."""
        on, around = places(servers, len(allowed))
        cores = list(dict.fromkeys(around))
        cores += sorted(set(on) - set(cores), key=lambda pus: int(pus.split(",")[0]))
        return (cores * threads)[:threads]

    def lines(options, *arguments):
        return run(options, [affinity, *map(str, arguments)])[0].stdout.split()

    for servers in (1, 2, 5):
        for threads in (1, 3, 8):
            expect(lines(["--servers", str(servers)], threads) == places_of_run(servers, threads),
                   f"{servers} servers, {threads} threads are elsewhere")
    expect(lines(["--servers", "1"], 4, "c11") == places_of_run(1, 4),
           "C11's threads are elsewhere")
    # Without a server each core has its share, and a place is free again when its thread ends.
    bound = lines([], 2 * len(allowed))
    cores = list(dict.fromkeys(bound))
    expect(all(bound.count(core) == 2 * len(allowed) // len(cores) for core in cores),
           f"not spread evenly: {bound}")
    expect(lines([], 5, "in-turn") == [cores[0]] * 5, "a place was not given back")
    expect(lines(["--affinity", "none"], 2) == [everywhere] * 2, "bound without being asked")
    expect(lines([], 3, "own", allowed[-1]) == [str(allowed[-1])] * 3, "its own choice was changed")
    expect(lines([], 1, "main") == [everywhere], "the main thread was bound")
    expect(lines(["--bind-main"], 1, "main") == [cores[0]], "the main thread was not bound")
    expect(lines([], 1, "exec") == [everywhere], "a program that a thread became is bound")
    expect(lines([], 1, "spawn") == [everywhere] * 4 + [cores[0]],
           "a program that a thread started is bound")
    expect(lines([], 1, "fork") == [everywhere] + (cores * 2)[:2], "a forked child is bound")
    if len(cores) > 1:
        beside = run(["--barrier"], [affinity, "50", "beside"])[0].stdout.splitlines()
        # The maker may have moved to and fro in between: seldom.
        together = [line for line in beside for pus, before, after in [line.split()]
                    if before == after and before in pus.split(",")]
        expect(len(together) <= 5, f"where their maker is, which waits at barriers, too: {beside}")
    if len(allowed) > 1:
        run_on = ["taskset", "-c", str(allowed[-1])]
        done = run([], [*run_on, affinity, "2"])[0].stdout.split()
        expect(done == [str(allowed[-1])] * 2, f"bound outside of what is allowed: {done}")


def case_barriers():
    """A C++ program at pthread barriers: teams, crowds, ends, forks."""
    expect(subprocess.run([sys.argv[3]], capture_output=True, text=True, check=True, timeout=900,
                          env=ENVIRONMENT).stdout == "passed\n", "alone it fails")
    for options in ([], ["--affinity", "none"], ["--mutex", "cna", "--bind-main"]):
        done, processes = run(["--barrier", *options], [sys.argv[3]])
        expect(done.stdout == "passed\n", f"{options}: {done.stdout}")
        waits = [process["barriers"]["pthread"] for process in processes]
        expect(sum(one["ours"] for one in waits) >= 2 * 70_000 + 3 * 5000, f"not ours: {waits}")
        # The child that shares one ends without a report.
        expect(sum(one["shared"] for one in waits) == 50, f"shared ones: {waits}")
        expect(sum(one["too_many"] for one in waits) == 0, f"too many: {waits}")
        expect(all(0 < sum(one["last"]) <= one["ours"] / 2 for one in waits if one["ours"]),
               f"last: {waits}")
    done = subprocess.run([muster, "run", "--barrier", "--", sys.argv[3]], capture_output=True,
                          text=True, check=True, timeout=900, env=ENVIRONMENT)
    expect(done.stdout == "passed\n" and not done.stderr, f"uncounted: {done}")
    done, _ = run(["--barrier", "--verbose"], [sys.argv[3]])
    expect("waits at pthread barriers" in done.stderr, f"it told {done.stderr}")


def build_openmp(compiler, source, *flags):
    """A program, and the same as a library."""
    built = []
    for ending, more in (("", []), (".so", ["-shared", "-fPIC"])):
        built.append(os.path.join(scratch, os.path.basename(source) + "." + compiler + ending))
        done = subprocess.run([need(compiler), "-fopenmp", "-O2", *flags, *more, source, "-o",
                               built[-1]], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print("skipped: it has no OpenMP (package libomp-dev):", done.stderr)
            sys.exit(77)
    return built


def case_openmp():
    """An OpenMP program: what its constructs promise, with tasks, nests, roots, forks; the same as
    a library that a program opens, which brings the runtime along."""
    program, library = build_openmp(sys.argv[4], sys.argv[3])
    cases = ["barriers", "worksharing", "tasks", "late-tasks", "nested", "roots", "forks"]
    opened = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).main(2, (ctypes.c_char_p * 2)(b'', " \
             "sys.argv[2].encode()))"
    need("python3")
    # A process each: libomp's threads of earlier teams look for work, and take others' time.
    for command in ([program], ["python3", "-c", opened, library]):
        for options in ([], ["--affinity", "none"], ["--bind-main", "--mutex", "mcs"]):
            waits = []
            for case in cases:
                done, processes = run(["--barrier", *options], [*command, case])
                expect(done.stdout == "passed\n", f"{options}: {case}: {done.stdout}")
                waits += [process["barriers"]["openmp"] for process in processes]
            ours = sum(one["ours"] for one in waits)
            expect(ours >= 2000 * sum(range(2, 10)), f"not ours: {waits}")
            expect(sum(one["tasks"] for one in waits) > 0, f"no tasks were seen: {waits}")
            expect(sum(one["unknown"] for one in waits) == 0, f"unknown teams: {waits}")
            print(command[0], options, ours, "waits")
    # What nobody is to be told is not counted.
    for case in cases:
        done = subprocess.run([muster, "run", "--barrier", "--", program, case], timeout=900,
                              capture_output=True, text=True, check=True, env=ENVIRONMENT)
        expect(done.stdout == "passed\n" and not done.stderr, f"{case}: {done}")
    _, processes = run(["--barrier"], [program, "barriers"])
    teams = processes[0]["barriers"]["openmp"]["teams"]
    expect([one["size"] for one in teams] == list(range(2, 10)) and
           all(one["algorithm"] for one in teams), f"teams: {teams}")
    for name in ("sense-reversing", "mcs", "combining-tree:3"):
        done, processes = run([f"--barrier={name}"], [program, "barriers"])
        expect(done.stdout == "passed\n" and processes[0]["barriers"]["algorithm"] == name, name)
    # What can be cancelled is left to the runtime; LLVM 14's hangs there, alone, too.
    if sys.argv[4] == "clang":
        return
    # Only a barrier that knows where its members sit can be this one.
    if len(os.sched_getaffinity(0)) > 1:
        _, processes = run(["--barrier=topo", "--bind-main"], [program, "barriers"])
        teams = processes[0]["barriers"]["openmp"]["teams"]
        expect(teams[0]["size"] == 2 and teams[0]["algorithm"] == "topo", f"teams: {teams}")
    cancels = {**ENVIRONMENT, "OMP_CANCELLATION": "true"}
    done = subprocess.run([muster, "run", "--verbose", "--barrier", "--", program, "cancellation"],
                          capture_output=True, text=True, timeout=900, env=cancels, check=True)
    expect(done.stdout == "passed\n" and " 0 waits of teams" in done.stderr, done.stderr)


def case_openmp_kinds():
    """What is seldom in OpenMP programs, of each compiler; and both runtimes in one process."""
    built = {compiler: build_openmp(compiler, sys.argv[3], "-std=c++20")
             for compiler in ("g++", "clang++")}

    def waits(command, code=0):
        done, processes = run(["--barrier"], command, code)
        expect(done.stdout == "passed\n", f"{command}: {done.stdout}")
        both = [process["barriers"]["openmp"] for process in processes]
        return {what: sum((one[what] for one in both), type(none)())
                for what, none in both[0].items()}

    for compiler, (program, _) in built.items():
        for case, at_least in (("exceptions", {"ours": 400}),
                               ("reductions", {"tasks": 1, "inside": 1400}),
                               ("leagues", {"ours": 3, "tasks": 100}),
                               ("sizes", {"ours": 1000, "joins": 380}),
                               ("forks", {"ours": 1000}), ("many", {"ours": 3})):
            counted = waits([program, case])
            for what, least in at_least.items():
                expect(counted[what] >= least, f"{compiler}: {case}: {counted}")
            expect(counted["unknown"] == 0, f"{compiler}: {case}: {counted}")
        counted = waits([program, "late"])
        last = counted["last"]
        expect(sum(last) >= 199 and last[1] > 0.9 * sum(last), f"{compiler}: late: {counted}")
        expect(counted["until_the_last_ns"] > 2 * 199 * 100_000, f"{compiler}: late: {counted}")
        expect(waits([program, "ends"], 3)["ours"] > 0, "not ours where a region never ends")
    counted = waits([built["g++"][0], "old"])
    expect(counted["unknown"] == 20 * 2 * 20 * 4 and counted["ours"] > 0, f"old: {counted}")
    for one, another in (("g++", "clang++"), ("clang++", "g++")):
        counted = waits([built[one][0], "other", built[another][1]])
        expect(counted["ours"] > 10_000 and counted["unknown"] == 0, f"two runtimes: {counted}")
    # Neither is the program's own: each is found by who calls it.
    counted = waits(["python3", "-c", """
import ctypes, sys
for library in [ctypes.CDLL(name) for name in sys.argv[1:]] * 2:
    library.team_of(3, 500, None)
print("passed")""", built["g++"][1], built["clang++"][1]])
    expect(counted["ours"] >= 4 * 3 * 1990 and counted["unknown"] == 0, f"two libraries: {counted}")


def noise(count, most):
    """The same numbers each time."""
    number = 1
    for _ in range(count):
        number = number * 48271 % 0x7fffffff
        yield number % most


def negative():
    """A camera's picture, as Adobe's DNG has it: one number a point, behind a filter of colours."""
    side = 128
    points = b"".join(struct.pack("<H", 200 + n) for n in noise(side * side, 16000))
    fields = [  # tag, type, count, value
        (254, 4, 1, 0), (256, 4, 1, side), (257, 4, 1, side), (258, 3, 1, 16), (259, 3, 1, 1),
        (262, 3, 1, 32803), (271, 2, 4, b"Its\0"), (272, 2, 4, b"One\0"), (273, 4, 1, None),
        (274, 3, 1, 1), (277, 3, 1, 1), (278, 4, 1, side), (279, 4, 1, len(points)),
        (284, 3, 1, 1), (33421, 3, 2, b"\2\0\2\0"), (33422, 1, 4, b"\0\1\1\2"),
        (50706, 1, 4, b"\1\1\0\0"), (50717, 4, 1, 16383),
        (50721, 10, 9, [90, 0, 0, 0, 100, 0, 0, 0, 80])]
    far, head = b"", struct.pack("<2sHIH", b"II", 42, 8, len(fields))
    begin = len(head) + 12 * len(fields) + 4
    for tag, kind, count, value in fields:
        if isinstance(value, list):
            far += b"".join(struct.pack("<ii", number, 100) for number in value)
            value = begin
        elif value is None:
            value = begin + 9 * 8
        head += struct.pack("<HHI", tag, kind, count) + (
            value if isinstance(value, bytes) else struct.pack("<I", value))
    return head + bytes(4) + far + points


PACKAGE = """Name: it
Version: 1
Release: 1
Summary: it
License: none
BuildArch: noarch
%description
it
%install
mkdir -p %{buildroot}/it
for i in 0 1 2 3 4 5; do seq ${i}0000 >%{buildroot}/it/$i; done
""" + "".join(f"""%package {i}
Summary: it
%description {i}
it
%files {i}
/it/{i}
""" for i in range(6))


def case_openmp_packages():
    """Programs of Debian's that are built with OpenMP: what they write, bit for bit. The least
    number of what is counted shows that they were seen: not all of them have barriers."""
    fixed = ["_topdir " + scratch, "_rpmdir " + scratch + "/out", "_buildhost it",
             "use_source_date_epoch_as_buildtime 1", "clamp_mtime_to_source_date_epoch 1"]
    name, package, command, seen = {
        "gm": ("gm", "graphicsmagick", ["convert", "in.ppm", "-blur", "0x3", "-median", "2",
                                        "-resize", "300x300", "out/it.ppm"], "joins"),
        "sox": ("sox", "sox", ["--multi-threaded", "-R", "-n", "-b", "16", "-c", "4", "out/it.wav",
                               "synth", "2", "pinknoise", "reverb", "lowpass", "2000"], "joins"),
        "sumaclust": ("sumaclust", "sumaclust", ["-p", "4", "-F", "out/it", "in.fa"], "ours"),
        "dcraw": ("dcraw_emu", "libraw-bin", ["-q", "3", "-Z", "out/it.ppm", "in.dng"], "first"),
        # Tasks, in a region that can be cancelled.
        "rpmbuild": ("rpmbuild", "rpm", ["-bb", *[word for one in fixed for word in
                                                 ("--define", one)], "it.spec"], "cancellable"),
    }[sys.argv[3]]
    program = need(name, package)
    for file, data in (("in.ppm", b"P6 200 200 255\n" + bytes(noise(200 * 200 * 3, 256))),
                       ("in.fa", "".join(f">{i} count=1;\n" + "".join("acgt"[n % 4] for n in noise(
                           80 + i % 7, 5 + i % 50)) + "\n" for i in range(300)).encode()),
                       ("in.dng", negative()), ("it.spec", PACKAGE.encode())):
        with open(os.path.join(scratch, file), "wb") as into:
            into.write(data)
    out = os.path.join(scratch, "out")

    def written(runs):
        os.mkdir(out)
        report = runs()
        files = {}
        for path, _, names in os.walk(out):
            for one in names:
                with open(os.path.join(path, one), "rb") as file:
                    files[one] = hashlib.sha256(file.read()).hexdigest()
        shutil.rmtree(out)
        return files, report

    more = {**ENVIRONMENT, "OMP_NUM_THREADS": "4", "SOURCE_DATE_EPOCH": "1000000000"}
    ENVIRONMENT.update(more)
    alone, _ = written(lambda: subprocess.run([program, *command], cwd=scratch, check=True,
                                              capture_output=True, timeout=900, env=more))
    for options in ([], ["--affinity", "none"]):
        ours, (_, processes) = written(lambda some=options: run(["--barrier", *some],
                                                                [program, *command], cwd=scratch))
        counted = [one["barriers"]["openmp"] for one in processes]
        expect(alone and ours == alone, f"{options}: {ours}, not {alone}")
        expect(sum(one[seen] for one in counted) > 0, f"{options}: {counted}")
        print(name, options, counted)


def case_hybrid():
    """An MPI program with OpenMP teams: both kinds of barriers are ours, by both preloads."""
    mpi = sys.argv[5]
    program = os.path.join(scratch, "hybrid")
    package = {"openmpi": "libopenmpi-dev", "mpich": "libmpich-dev"}[mpi]
    subprocess.run([need("mpicc." + mpi, package), "-fopenmp", "-O2", sys.argv[3], "-o", program],
                   check=True)
    launcher = [need("mpirun." + mpi), "-n", "2"]
    launcher += ["--oversubscribe", "--bind-to", "none", "-x", "LD_PRELOAD=" + sys.argv[4]] \
        if mpi == "openmpi" else ["-genv", "LD_PRELOAD", sys.argv[4]]
    done = subprocess.run(
        [*launcher, muster, "run", "--barrier", "--affinity", "none", "--verbose", "--",
         program], capture_output=True, text=True, timeout=900, check=True,
        env={**ENVIRONMENT, "MUSTER_MPI_COUNTERS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1",
             "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    expect(done.stdout == "passed\n", done.stdout)
    for ours in (r"inside=400 .* theirs=0", r"OpenMP: 2397 waits of teams"):
        expect(len(re.findall(ours, done.stderr)) == 2, f"{ours}: {done.stderr}")


try:
    globals()["case_" + sys.argv[2]]()
finally:
    shutil.rmtree(scratch, ignore_errors=True)
