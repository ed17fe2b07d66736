#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# follow.sh <name>: reads ctest's output and writes, as it happens, a line for each test that ends,
# with what is left by the costs of the rest in <name>.costs. Failures go to <name>.failed too, and
# ctest's verdict to <name>.verdict.
set -uo pipefail
done_cost=0 all_cost=0 n=0 said=$SECONDS
ended='^ *[0-9]+/[0-9]+ Test +#[0-9]+: ([^ ]+) [ .]*\**([A-Za-z: ]+[a-zA-Z]) +([0-9.]+) sec'
noise='^(Test project|Total Test time|The following tests|Errors while running|Output from'
noise+=' these|Use "--rerun|$)'
declare -A costs=() runs=()
while read -r name cost; do
  costs[$name]=$cost
  all_cost=$((all_cost + cost))
done <"$1.costs"
all=${#costs[@]}
part=""
while true; do
  status=0
  IFS= read -r -t 60 line || status=$?
  if [ $status != 0 ]; then
    [ $status -gt 128 ] || break
    part+=$line  # nothing has ended for a minute
    echo "  running for $((SECONDS - said)) s: ${!runs[*]}"
    continue
  fi
  line=$part$line part=""
  if [[ $line =~ ^\ +Start\ +[0-9]+:\ (.*) ]]; then
    runs[${BASH_REMATCH[1]}]=1
  elif [[ $line =~ $ended ]]; then
    name=${BASH_REMATCH[1]} result=${BASH_REMATCH[2]} seconds=${BASH_REMATCH[3]}
    unset "runs[$name]"
    n=$((n + 1))
    done_cost=$((done_cost + ${costs[$name]:-1}))
    # At the pace so far; at first, at the one that two quiet cores have.
    left=$(((all_cost - done_cost) * (SECONDS + 30) / (done_cost + 60) / 60))
    printf '%4d of %d  %-40s %-12s %7s s   about %d minutes left\n' \
      $n "$all" "$name" "$result" "$seconds" $left
    said=$SECONDS
  elif [[ $line == *"tests passed, "*" failed out of "* ]]; then
    echo "$line" >"$1.verdict"
  elif [[ $line =~ ^[[:space:]]+[0-9]+\ -\ (.*\)) ]]; then
    [[ $line == *"(Skipped)" ]] || echo "${BASH_REMATCH[1]}" >>"$1.failed"
  elif ! [[ $line =~ $noise ]]; then
    echo "$line"
  fi
done
