#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# preload.sh <libmuster-malloc.so> <unmodified>: programs that are not changed, with the library as
# their malloc.
set -euo pipefail
library=$1
unmodified=$2
fail() { echo "$*" >&2; exit 1; }
ours() { LD_PRELOAD=$library MUSTER_MEMORY_SERVERS=0 timeout 600 "$@"; }

echo "-- the whole family, threads, fork"
ours "$unmodified"
"$unmodified" >/dev/null && fail "the program cannot tell that nothing is preloaded"
said=$(LD_PRELOAD=$library MUSTER_MEMORY_SERVERS=0,x "$unmodified" 2>&1) && fail "no list is taken"
grep -q 'MUSTER_MEMORY_SERVERS is ignored' <<<"$said" || fail "it does not say: $said"
said=$(MALLOC_CONF=abort_conf:true,no_such:1 ours "$unmodified" 2>&1) && fail "MALLOC_CONF: unread"
grep -q 'Invalid conf pair: no_such:1' <<<"$said" || fail "it does not say: $said"

echo "-- programs of others, each as without it"
same() {
  local without with
  without=$("$@" 2>&1) || { echo "skipped: $1"; return 0; }
  with=$(ours "$@" 2>&1) || fail "$* fails: $with"
  [ "$without" = "$with" ] || fail "$* says something else: $with"
  echo "$1"
}
same python3 -c '
import threading, subprocess, ctypes, json
total = []
def work(n):
    table = {i: str(i) * (i % 50) for i in range(20000)}
    total.append(sum(len(v) for v in table.values()))
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(total, subprocess.check_output(["echo", "child"]), len(json.dumps(list(range(10000)))))'
same perl -e 'my %h; $h{$_} = "x" x ($_ % 100) for 1..50000; delete $h{$_} for 1..25000;
  print scalar(keys %h), " ", `echo child`'
same git -C "$(dirname "$0")" log --oneline -50
same bash -c 'for i in $(seq 200); do x=$(echo $i); done; echo $x'
same sort --parallel=2 -R --random-source=/dev/zero "$0"
