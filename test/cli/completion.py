#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""completion.py <muster>: bash, zsh and fish, as one types to them, complete commands, options and
values, and the values are those that the program takes."""
import json
import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

muster = os.path.abspath(sys.argv[1])
scratch = tempfile.mkdtemp()
here = os.path.join(scratch, "here")  # where the shells are: its files are all there are
os.makedirs(os.path.join(here, "folder"))
open(os.path.join(here, "results.json"), "w").close()
open(os.path.join(here, "other.machine"), "w").close()


def script(shell):
    name = os.path.join(scratch, "_muster" if shell == "zsh" else shell)
    with open(name, "w") as file:
        subprocess.run([muster, "completion", shell], stdout=file, check=True)
    return name


class Typed:
    """A shell at a terminal. Ctrl-T inserts all completions, Ctrl-G shows the line."""

    def __init__(self, command, setup):
        environment = dict(os.environ, TERM="dumb", HISTFILE="/dev/null", PS1="", PS2="")
        pid, self.terminal = pty.fork()
        if pid == 0:
            os.chdir(here)
            os.execvpe(command[0], command, environment)
        self.said = b""
        os.write(self.terminal, (setup + "\nprintf '%s%s\\n' rea dy\n").encode())
        self.read_until(b"ready")

    def read_until(self, end):
        deadline = time.monotonic() + 300
        while not re.search(end, self.said):
            if not select.select([self.terminal], [], [], deadline - time.monotonic())[0]:
                sys.exit(f"no answer: {self.said!r}")
            self.said += os.read(self.terminal, 65536)
        found = re.search(end, self.said)
        self.said = self.said[found.end():]
        return found

    def offered(self, line):
        os.write(self.terminal, line.encode() + b"\x14\x07")
        completed = self.read_until(rb"\n<<(.*)>>\r?\n").group(1).decode()
        os.write(self.terminal, b"\x15")
        before = len(shlex.split(line)) - (not line.endswith(" "))
        return [word.rstrip("/") for word in shlex.split(completed)[before:]]


def bash():
    return Typed(["bash", "--norc", "--noprofile", "-i"], f"""source {script("bash")}
        bind 'set bell-style none'; bind 'set enable-bracketed-paste off'
        bind '"\\C-t": insert-completions'
        bind -x '"\\C-g": printf "\\n<<%s>>\\n" "$READLINE_LINE"'""").offered


def zsh(sourced=""):
    return Typed(["zsh", "-f", "-i"], f"""fpath=({os.path.dirname(script("zsh"))} $fpath)
        unsetopt beep zle_bracketed_paste 2>/dev/null; autoload -Uz compinit; compinit -D -u
        show() {{ print -r -- $'\\n'"<<$BUFFER>>" }}; zle -N show; bindkey '^G' show
        all() {{ _main_complete; compstate[insert]=all compstate[list]= }}
        zle -C all complete-word all; bindkey '^T' all; bindkey '^U' kill-whole-line
        {sourced}""").offered


def zsh_that_sources_it():
    return zsh(f"compdef -d muster; unfunction _muster; source {script('zsh')}")


def fish():
    def offered(line):
        said = subprocess.run(
            ["fish", "--no-config", "-c", f"source {script('fish')}; complete -C $argv[1]", line],
            cwd=here, capture_output=True, text=True, check=True, timeout=300)
        return [row.split("\t")[0].rstrip("/") for row in said.stdout.splitlines()]
    return offered


listed = json.loads(subprocess.check_output([muster, "list", "--json"]))


def names(*kinds):
    return {item["name"] for item in listed["results"] if item["kind"] in kinds}


def refused(line, more=""):
    """The names that the program lists when it is told one that is none."""
    command = [muster, *line.split()[1:], "nonsense", *more.split()]
    said = subprocess.run(command, capture_output=True, text=True).stderr
    found = re.search(r"(?:there are:|mappings are) (.*)", said)
    if not found:
        sys.exit(f"{line}nonsense: {said}")
    if found.group(1).startswith('"'):
        return set(re.findall(r'"([^"]*)"', found.group(1)))
    return set(re.sub(r" \([^)]*\)|,", "", found.group(1)).split())


algorithms = names("algorithm")
modelled = json.loads(subprocess.check_output([muster, *(
    "sim lock --machine oak --locks all --threads 2 --pattern random --window 9 --warm-up 9 --json"
).split()]))
files = {"folder", "results.json", "other.machine"}
cases = {  # what is typed, and what all of that may go on with
    "muster be": {"bench"},
    "muster bench ": {"barrier", "lock", "mpi", "summary"},
    "muster bench barrier --part": {"--participants"},
    "muster bench barrier --seconds 3 --part": {"--participants"},
    "muster sim lock --mac": {"--machine"},
    "muster sim barrier --machine k": {"kunpeng920-2s"},
    "muster sim barrier --machine=k": {"--machine=kunpeng920-2s"},
    "muster sim barrier --machine oth": {"other.machine"},
    "muster sim barrier --algorithms ": {"all"} | algorithms
        | names("message barrier", "OpenMP's barrier"),
    "muster sim barrier --algorithms mcs,tourn": {"mcs,tournament"},
    "muster sim barrier --algorithms=mcs,tourn": {"--algorithms=mcs,tournament"},
    "muster sim barrier --map-by ": refused("muster sim barrier --machine oak --map-by "),
    "muster sim barrier --ranks ": set(),
    "muster sim barrier --output ": files,
    "muster sim barrier --output=res": {"--output=results.json"},
    "muster sim lock --locks ": {"all"} | {row["lock"] for row in modelled["results"]},
    "muster sim lock --pattern ": refused("muster bench lock --pattern "),
    "muster sim lock --memory ": {"default", "aware"},
    "muster bench barrier --algorithms ": {"all", "none"} | algorithms | names("message barrier"),
    "muster bench barrier --wait ": names("wait"),
    "muster bench barrier --mode ": refused("muster bench barrier --mode "),
    "muster bench barrier --map-by ": refused("muster bench barrier --map-by "),
    "muster bench barrier --regime ": refused("muster bench barrier --regime "),
    "muster bench barrier --peers ": refused("muster bench barrier --peers "),
    "muster bench lock --locks ": refused("muster bench lock --locks "),
    "muster explain -a tourn": {"tournament"},
    "muster check --algorithms mutex:c": {"mutex:cna"},
    "muster check --variant ": refused("muster check --algorithms following,sense-reversing "
                                       "--variant "),
    "muster check --mutant ": refused("muster check --mutant "),
    "muster check --mutant mutex:\\ a\\ cl": {"mutex: a claim dropped"},
    "muster check --mutant sense\\ n": {"sense not reversed"},
    "muster check --weaken src/barrier/mc": {"src/barrier/mcs.hpp:"},
    "muster doctor --only ": refused("muster doctor --only "),
    "muster place --policy ": refused("muster place --policy "),
    "muster run --mutex ": refused("muster run --mutex ", "-- true"),
    "muster run --barrier=tourn": {"--barrier=tournament"},
    "muster run --barrier ": files,
    "muster compare ": files,
    "muster run --verbose -- ": files,
}
if_not_fish = {"muster sim barrier --algorithms mcs tourn": {"tournament"}}

wrong = 0
for shell in (bash, zsh, zsh_that_sources_it, fish):
    program = shell.__name__.split("_")[0]
    if not shutil.which(program):
        print(f"skipped: completion by {program} (package {program})")
        continue
    offered = shell()
    for line, expected in {**cases, **({} if shell is fish else if_not_fish)}.items():
        got = offered(line)
        if len(got) != len(expected) or set(got) != expected:
            print(f"{shell.__name__}: {line}\n  offers {sorted(got)}\n  not {sorted(expected)}")
            wrong += 1
shutil.rmtree(scratch)
sys.exit(wrong != 0)
