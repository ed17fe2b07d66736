# SPDX-License-Identifier: BSD-3-Clause
"""What `muster ... --json` prints, as tables."""

import json
import os
import shutil
import subprocess
import sys
import warnings


def read_results(source):
    """The rows of results: of a file that `--json` or `--output` wrote, or of an open one.

    A pandas.DataFrame where pandas is installed, with nested members as columns "wait.policy";
    else a list of dicts as they stand there, with a warning where pandas is broken. ValueError if
    it has no results, OSError.
    """
    if hasattr(source, "read"):
        text = source.read()
    else:
        with open(os.fspath(source), encoding="utf-8") as file:
            text = file.read()
    try:
        rows = json.loads(text)["results"]
        if not isinstance(rows, list):
            raise TypeError
    except (KeyError, TypeError):
        raise ValueError('no results of Muster: it has no rows, "results"') from None
    except json.JSONDecodeError as error:
        raise ValueError(f"no results of Muster: {error}") from None
    try:
        import pandas
    except Exception as error:  # of an installation that is broken: any
        if not isinstance(error, ModuleNotFoundError) or error.name != "pandas":
            warnings.warn(f"pandas is broken: {type(error).__name__}: {error}", stacklevel=2)
        return rows
    return pandas.json_normalize(rows)


def run(*arguments, muster="muster"):
    """Runs `muster` with these arguments and --json: run("sim", "barrier", "--machine", "epyc...").

    The rows, as read_results() has them. Progress goes to a terminal's standard error.
    FileNotFoundError if there is no such program, ValueError if it fails: with what it said, where
    that is not on a terminal already.
    """
    program = shutil.which(muster)
    if program is None:
        raise FileNotFoundError(f"no program {muster!r}: install Muster, or say where it is")
    done = subprocess.run(
        [program, *map(str, arguments), "--json"],
        stdout=subprocess.PIPE,
        # A notebook is no terminal; and some programs have none.
        stderr=None if sys.stderr and sys.stderr.isatty() else subprocess.PIPE,
        encoding="utf-8",
        check=False,
    )
    if done.returncode != 0:
        said = f": {done.stderr.strip()}" if done.stderr else ""
        raise ValueError(
            f"muster {' '.join(map(str, arguments))}: exit code {done.returncode}{said}"
        )
    if done.stderr and sys.stderr:
        sys.stderr.write(done.stderr)  # warnings
    import io

    return read_results(io.StringIO(done.stdout))
