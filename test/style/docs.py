#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""docs.py SOURCE SCRATCH [MUSTER]: the tables of the documents are those that doc/tables.py makes,
a changed number is noticed, and what a link names is there."""
import pathlib
import re
import shutil
import subprocess
import sys

source, scratch = map(pathlib.Path, sys.argv[1:3])
binary = ["--muster", sys.argv[3]] if sys.argv[3:] else []  # without it, fewer tables


def check(tree, output=None):
    command = [sys.executable, tree / "doc" / "tables.py", "--check", *binary]
    return subprocess.run(command, stdout=output).returncode


def anchors(page):
    """As hosts make them of headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


if check(source) != 0:
    sys.exit(1)

shutil.rmtree(scratch, ignore_errors=True)
for folder in ("doc", "include"):
    shutil.copytree(source / folder, scratch / folder)
table = scratch / "doc" / "results" / "crowded.json"
another = re.sub(r"\d us", lambda last: f"{9 - int(last[0][0])} us", table.read_text(), count=1)
table.write_text(another)
if check(scratch, subprocess.DEVNULL) != 1:
    sys.exit("a changed number is not noticed")

wrong = 0
for page in [source / "README.md", source / "CHANGELOG.md", *source.glob("doc/**/*.md")]:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if link.startswith("http"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        there = target.exists() and (
            not anchor or target.suffix != ".md" or anchor in anchors(target))
        if not there:
            print(f"{page.relative_to(source)}: {link} is not there")
            wrong += 1
sys.exit(1 if wrong else 0)
