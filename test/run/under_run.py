# SPDX-License-Identifier: BSD-3-Clause
"""What scripts that try programs under `muster run` share: <script> <muster> <case>
[<argument>...]. They exit with 77 where the program is not installed."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

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


def alone(command, **more):
    """Runs it without us; what it printed."""
    return subprocess.run(command, capture_output=True, text=True, timeout=900, check=True,
                          env=ENVIRONMENT, **more).stdout


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


def run_case(cases):
    """The functions of the calling script; the case that the command line names is run."""
    try:
        cases["case_" + sys.argv[2]]()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
