#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""programs.py <muster> <case> [<program>]: other people's programs under `muster run`, with each
mutex: they do what they do alone, and the counters show that ours were at work. Exits with 77 where
the program is not installed."""

import json
import os
import re
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from under_run import ENVIRONMENT, alone, expect, muster, need, run, run_case, scratch  # noqa: E402

MUTEXES = ["pthread", "spin-then-park", "mcs", "cna"]


def total(processes, part, what):
    return sum(process[part][what] for process in processes)


def each_mutex(command, expected=None, locks=1, threads=1, waits=0, **more):
    """The same output as alone, with each mutex, and at least so many locks, threads and waits."""
    if expected is None:
        expected = alone(command, **more)
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
    each_mutex([python, "-c", PYTHON], threads=17, locks=20 * 400)


def case_perl():
    perl = need("perl")
    if alone([perl, "-MConfig", "-e", "print $Config{useithreads} // q()"]) != "define":
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
            held = alone(["redis-cli", "-s", socket, "llen", "mylist"], cwd=scratch)
            expect(held == "4000\n", f"--mutex {mutex}: {held} of 4000 are there")
            alone(["redis-cli", "-s", socket, "shutdown", "nosave"], cwd=scratch)
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
        expected = alone(command)
        for mutex in MUTEXES:
            done, processes = run(["--servers", "1", "--memory", "aware", "--mutex", mutex],
                                  command)
            expect(done.stdout == expected, f"--mutex {mutex}: it printed\n{done.stdout}")
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
    text = alone([muster, "place", "--servers", str(servers), "--threads", str(threads), "--json"])
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
    expect(parent["threads"] == 2 and parent["mutexes"] == 1, str(parent))
    expect(child["locks"] == 7 and child["threads"] == 1 and not child["contended"], str(child))
    for text in ("hot (run-contention): waited", "want_it", "hold_it", "redicted"):
        expect(text in done.stderr, f"it does not say {text}: {done.stderr}")
    expect(max(map(len, done.stderr.splitlines())) < 80, done.stderr)
    wrong = re.search(r"\b1\s+(threads|mutexes|locks|times|lines)\b", done.stderr)
    expect(wrong is None, done.stderr)
    predicted = hot["predicted"]
    if "not" in predicted:
        print(f"SKIPPED: {predicted['not']}")
    else:  # whoever holds it sleeps: no mutex helps
        for way in predicted["ways"]:
            if way["lock"].startswith("mutex"):
                expect(0.8 < way["ratio"] < 1.2, str(predicted))
    elsewhere = report("--machine", "kunpeng920-2s", "--", program).stderr
    expect("not" in predicted or "kunpeng920-2s: " in elsewhere, elsewhere)
    expect(max(map(len, elsewhere.splitlines())) < 80, elsewhere)
    for words in (["--report", "--machine", "nonsense", "--", program],
                  ["--machine", "oak", "--", program]):
        done = subprocess.run([muster, "run", *words], capture_output=True, text=True, timeout=900,
                              env=ENVIRONMENT)
        expect(done.returncode == 2 and not done.stdout,
               f"{words}: {done.returncode}, {done.stderr}")
    seen = report("--", program, "readers").stderr
    expect(": 0 threads took a mutex" in seen and "not watched: read-write locks" in seen, seen)
    expect("no report" in report(program, "leave", code=3).stderr, "nothing said of _exit")
    odd = shutil.copy(program, os.path.join(scratch, "odd\x1b]0;title\a"))
    said = report("--", odd).stderr
    expect("odd\\x1b]0;title\\x07" in said and "\x1b" not in said, f"a terminal is sent {said!r}")
    report(program, "die", code=128 + 6)
    # Functions that are watched do what they do.
    for case in ("kinds", "conditions"):
        expect(report("--", sys.argv[4], case).stdout == "passed\n", f"{case} are no more")
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


run_case(globals())
