# SPDX-License-Identifier: BSD-3-Clause
"""What `muster ... --json` prints, as tables."""

import json
import os
import shutil
import subprocess


def read_results(source):
    """The rows of results: of a file that `--json` or `--output` wrote, or of an open one.

    A pandas.DataFrame where pandas is installed, with nested members as columns "wait.policy";
    else a list of dicts as they stand there. ValueError if it has no results, OSError.
    """
    if hasattr(source, "read"):
        text = source.read()
    else:
        with open(os.fspath(source), encoding="utf-8") as file:
            text = file.read()
    try:
        rows = json.loads(text)["results"]
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"no results of Muster: {error}") from None
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.json_normalize(rows)


def run(*arguments, muster="muster"):
    """Runs `muster` with these arguments and --json: run("sim", "barrier", "--machine", "epyc...").

    The rows, as read_results() has them. Progress goes to standard error. FileNotFoundError if
    there is no such program, ValueError with what it said if it fails.
    """
    program = shutil.which(muster)
    if program is None:
        raise FileNotFoundError(f"no program {muster!r}: install Muster, or say where it is")
    done = subprocess.run(
        [program, *map(str, arguments), "--json"], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        raise ValueError(f"muster {' '.join(map(str, arguments))}: exit code {done.returncode}")
    import io

    return read_results(io.StringIO(done.stdout))
