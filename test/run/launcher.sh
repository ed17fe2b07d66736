#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# launcher.sh <muster> <scratch>: what `muster run` says and does besides running a program well.
set -uo pipefail
muster=$1 scratch=$2
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
fail() { echo "FAILED: $*" >&2; exit 1; }

# expect <exit code> <what it says> <arguments>...
expect() {
  local code=$1 says=$2
  shift 2
  "$muster" run "$@" >out 2>err
  local got=$?
  [ $got = "$code" ] || fail "muster run $*: ended with $got, not $code: $(cat err)"
  [ -z "$says" ] || grep -qE -- "$says" out err ||
    fail "muster run $*: does not say \"$says\": $(cat out err)"
}

echo "-- mistakes"
expect 2 'no mutex "nice"; there are: .*cna' --mutex nice -- true
expect 2 'no affinity "x"; there are: hierarchical, none' --affinity x -- true
expect 2 'no memory "x"; there are: default, aware' --memory x -- true
expect 2 'not with --affinity none' --affinity none --servers 2 -- true
expect 2 'not with --affinity none' --affinity none --bind-main -- true
expect 2 'no barrier "nonsense"; there are: auto, .*mcs' --barrier=nonsense -- true
expect 2 'program' --mutex mcs
expect 1 '--json: /nowhere/at/all' --json /nowhere/at/all -- true

if [ -c /dev/full ]; then
  expect 0 'no whole report in /dev/full: No space left' --json /dev/full -- true
  expect 1 '/dev/full cannot be written: No space left' --report --json /dev/full -- true
  [ -c /dev/full ] || fail "a device was replaced by a file"
fi

echo "-- exit codes and words"
expect 7 '' -- sh -c 'exit 7'
expect 127 'no-such-program' -- ./no-such-program
touch not-executable
expect 126 'not-executable' -- ./not-executable
mkfifo fifo
chmod +x fifo
expect 126 'fifo: Permission denied' -- ./fifo
echo earlier >kept
for program in ./no-such-program ./not-executable; do
  for report in '' --report; do
    "$muster" run $report --json kept -- $program 2>/dev/null
    [ "$(cat kept)" = earlier ] || fail "$program does not start, and the earlier report is gone"
  done
done
mkdir tmp
export TMPDIR=$PWD/tmp
for line in '{"half' '{"a": 1}' '{"contended": [1]}' 5; do
  damages="echo '$line' >>\"\$MUSTER_RUN_JSON\"; exit 3"
  expect 3 'a line of the report is damaged' --report -- sh -c "$damages"
done
expect 0 '^\[a,b\] -x  --json$' -- printf '%s %s %s %s\n' '[a,b]' -x '' --json
"$muster" run -- sh -c 'kill -TERM $$' 2>/dev/null
[ $? = 143 ] || fail "a signal is not the program's end"

echo "-- names that a terminal would obey"
name=$(printf 'a\033[2Jb')
ln -s "$(type -P true)" "$name"
expect 127 'a\\x1b\[2Jc: ' -- "./${name%b}c"
expect 0 '^muster run: \./a\\x1b\[2Jb$' --verbose -- "./$name"
grep -q '^muster run: a\\x1b\[2Jb (process' err || fail "the report names it otherwise: $(cat err)"
! grep -qF "$name" err || fail "the name is shown as it is"
"$muster" run --json name-report -- "./$name"
grep -qF '{"schema": 1, "program": "a\u001b[2Jb"' name-report || fail "in JSON: $(cat name-report)"
"$muster" run --report --json name-report -- "./$name" 2>err
grep -q '"program":"a\\u001b\[2Jb","schema":1,' name-report || fail "in JSON: $(cat name-report)"

echo "-- what cannot be preloaded"
printf 'int main(void) { return 0; }\n' >empty.c
$CC -static empty.c -o static || fail "no static program"
expect 1 'linked statically' -- ./static
printf '#!%s/static\n' "$PWD" >script
chmod +x script
expect 1 'linked statically' -- ./script
$CC empty.c -o dynamic
loader=$(readelf -l dynamic | sed -n 's/.*interpreter: \(.*\)]/\1/p')
expect 0 'muster run: .*\(process' --verbose -- "$loader" ./dynamic
$CC empty.c -o privileged
chmod u+s privileged
if [ "$(id -u)" = 0 ]; then
  chown 65534 privileged
  chmod u+s privileged
  expect 1 "another user's rights" -- ./privileged
fi
if $CC -m32 -nostdlib -static empty.c -o other 2>/dev/null -e main; then
  expect 1 'another architecture' -- ./other
fi

echo "-- files that ask for too much"
$CC empty.c -o whole
python3 - <<'END'
import struct
# Where it has them, how many, bytes of each, and of one the type that is sought and its size.
for name, at, count_at, step, type_at, wanted, size_at in (
    ("loader", 32, 56, 56, 0, 3, 32),  # PT_INTERP
    ("names", 40, 60, 64, 4, 3, 32),  # SHT_STRTAB
):
    file = bytearray(open("whole", "rb").read())
    (first,) = struct.unpack_from("=Q", file, at)
    (count,) = struct.unpack_from("=H", file, count_at)
    for entry in range(first, first + count * step, step):
        if struct.unpack_from("=I", file, entry + type_at) == (wanted,):
            struct.pack_into("=Q", file, entry + size_at, 1 << 62)
    open("huge-" + name, "wb").write(file)
END
chmod +x huge-*
expect 0 '' -- ./huge-names
"$muster" run -- ./huge-loader 2>err # the kernel does not start it, and a shell is tried
! grep '^muster: ' err || fail "too much is read"

echo "-- sanitizers"
cat >sanitized.c <<'END'
#include <pthread.h>
static int shared;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void* work(void* none) {
  for (int i = 0; i < 1000; ++i) {
    pthread_mutex_lock(&mutex);
    ++shared;
    pthread_mutex_unlock(&mutex);
  }
  return none;
}
int main(void) {
  pthread_t team[2];
  for (int i = 0; i < 2; ++i) pthread_create(&team[i], 0, work, 0);
  for (int i = 0; i < 2; ++i) pthread_join(team[i], 0);
  return shared != 2000;
}
END
for kind in address:AddressSanitizer thread:ThreadSanitizer leak:LeakSanitizer; do
  $CC -fsanitize=${kind%:*} sanitized.c -pthread -o sanitized 2>/dev/null || continue
  ./sanitized || continue # not every machine lets them run
  expect 1 "is built with ${kind#*:}" -- ./sanitized
  expect 0 'sanitized has a sanitizer and is left alone' --mutex mcs -- sh -c ./sanitized
  [ $kind = thread:ThreadSanitizer ] || continue
  $muster run --servers 1 --memory aware -- true 2>/dev/null || continue
  expect 1 'which has a malloc of its own' --servers 1 --memory aware -- sh -c ./sanitized
done

echo "-- what was preloaded before stays"
$CC -shared -fPIC empty.c -o libbefore.so -Wl,-e,0 2>/dev/null ||
  $CC -shared -fPIC -x c - -o libbefore.so <<<'int before;'
LD_PRELOAD=$PWD/libbefore.so "$muster" run -- sh -c 'echo $LD_PRELOAD; cat /proc/self/maps' >out
grep -q "^/.*libmuster_run.so:$PWD/libbefore.so$" out || fail "LD_PRELOAD is $(head -1 out)"
grep -q "libbefore.so$" out || fail "what was preloaded before is gone"
"$muster" run -- "$muster" run -- sh -c 'echo $LD_PRELOAD' >out
[ "$(grep -o libmuster_run out | wc -l)" = 1 ] || fail "preloaded twice: $(cat out)"
for outer in '--mutex mcs' --report; do
  for inner in --report '--mutex mcs'; do
    expect 7 '' $outer -- "$muster" run $inner -- sh -c 'echo $LD_PRELOAD; exit 7'
    [ "$(grep -o libmuster_ out | wc -l)" = 1 ] || fail "$outer, $inner: preloaded: $(cat out)"
  done
done

echo "-- the report"
expect 0 'threads: 0 created' --verbose -- true
expect 0 'mutexes: mcs; [0-9]+ locks' --verbose --mutex mcs -- true
expect 0 'server 0: PUs [0-9,]+, for threads last$' --verbose --servers 1 -- true
if $muster run --servers 1 --memory aware -- true 2>/dev/null; then
  expect 0 "memory: from the servers' NUMA node [0-9]" --verbose --servers 1 --memory aware -- true
  expect 0 'server 0: PUs [0-9,]+$' \
    --verbose --affinity none --servers 1 --memory aware -- true
fi
"$muster" run --json report --mutex cna -- true
grep -q '"mutexes": {"name": "cna"' report || fail "the report says $(cat report)"
cat >lacking.c <<'END'
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
int main(int argc, char** argv) {
  close(STDERR_FILENO);
  if (argc > 1) return open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0600) != STDERR_FILENO;
  struct rlimit none = {3, 3};
  return dup(STDOUT_FILENO) != STDERR_FILENO || setrlimit(RLIMIT_NOFILE, &none);
}
END
$CC lacking.c -o lacking
for options in --verbose '--json /dev/full'; do
  expect 0 '' $options -- ./lacking precious
  [ ! -s precious ] || fail "$options: written into a file of the program's own: $(cat precious)"
done
"$muster" run --report -- ./lacking 2>&1 | cat >err # one file behind both
grep -q 'no report in .*muster-run-.*: Too many open files' err || fail "it says $(cat err)"
mkfifo held
{ "$muster" run --report -- sh -c 'cat held &'; echo >held; } 2>&1 | cat >err # which cat outlives
[ -z "$(ls tmp)" ] || fail "left behind: $(ls tmp)"
TMPDIR=$PWD/nowhere expect 1 "TMPDIR: $PWD/nowhere: No such file" --report -- true
for signals in INT 'INT QUIT'; do
  (
    trap '' $signals
    grep SigIgn /proc/self/status >expected
    "$muster" run --report -- grep SigIgn /proc/self/status >out 2>err
  )
  diff expected out || fail "other signals are ignored"
done

echo "-- versions of names"
preload=$("$muster" run -- sh -c 'echo $LD_PRELOAD')
for version in @@GLIBC_2.34 @GLIBC_2; do
  nm -D --defined-only "$preload" | grep -q "pthread_create$version" || fail "no $version"
done
needed=$(objdump -p "$preload" | awk '/NEEDED/ && $2 !~ /^(libc.so|ld-linux)/ { print $2 }')
[ -z "$needed" ] || fail "it needs $needed"
strangers=$(nm -D --defined-only "$preload" | awk '$2 != "A" { print $3 }' |
  grep -vE '^(__)?pthread_(create|mutex_|cond_)|^thrd_create' |
  grep -vE '^exec|^fexecve|^posix_spawnp?$|^system$|^popen$' |
  grep -vE '^__register_atfork$|^muster_preload_' || true)
[ -z "$strangers" ] || fail "it also exports: $strangers"
cat >versions.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int main(void) {
  const char* const names[][2] = {
      {"pthread_create", OLD},        {"pthread_mutex_trylock", OLD},
      {"pthread_mutex_timedlock", OLD}, {"pthread_mutex_clocklock", "GLIBC_2.30"},
      {"pthread_cond_clockwait", "GLIBC_2.30"}, {"thrd_create", "GLIBC_2.28"}};
  for (int i = 0; i < 12; ++i) {
    Dl_info found;
    const char* const name = names[i / 2][0];
    void* const function = dlvsym(RTLD_DEFAULT, name, i % 2 == 0 ? "GLIBC_2.34" : names[i / 2][1]);
    if (function == NULL || dladdr(function, &found) == 0 ||
        strstr(found.dli_fname, "libmuster_run") == NULL) {
      puts(name);
      return 1;
    }
  }
  return 0;
}
END
old=$(nm -D --defined-only "$preload" | sed -n 's/.*pthread_create@\(GLIBC.*\)/\1/p')
$CC -DOLD="\"$old\"" versions.c -o versions || fail "no program"
expect 0 '' -- ./versions
