#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes what stands between the markers of the documents: tables of doc/results/*.json, and what
the headers and `muster list` say.

    doc/tables.py [--muster BINARY] [--check] [PAGE...]

A marker is `<!-- made: NAME -->`; up to `<!-- end -->` the text is this command's. NAME is that of
a file in doc/results, or machines, errors, options. With --muster also barriers, locks, rules
(of auto) and parameters (of the model), which are left as they are without. --check writes nothing
and exits with 1 where a page differs.

A file in doc/results is one table of one run: title, machine (a key of machines.json), commit,
commands, about (what the figures are), rows (the first one is the head), note (optional).
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

DOC = pathlib.Path(__file__).resolve().parent
HEADERS = DOC.parent / "include" / "muster"
FIELDS = ("title", "machine", "commit", "commands", "about", "rows")


def table(rows):
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(line.replace("|  |", "| |") for line in lines)


def result(name):
    file = DOC / "results" / (name + ".json")
    run = json.loads(file.read_text())
    for field in FIELDS:
        if field not in run:
            sys.exit(f"{file} lacks {field}")
    if run["machine"] not in machines():
        sys.exit(f"{file}: no machine {run['machine']} in machines.json")
    if any(len(row) != len(run["rows"][0]) for row in run["rows"]):
        sys.exit(f"{file}: rows differ in length")
    text = f"**{run['title']}.** {run['about']}\n\n{table(run['rows'])}\n\n"
    if "note" in run:
        text += run["note"] + "\n\n"
    return text + f"*{run['machine']}, {run['commit']}:* " + "; ".join(
        f"`{command}`" for command in run["commands"])


def machines():
    return json.loads((DOC / "results" / "machines.json").read_text())


def comment(text):
    """A documentation comment's text in one line."""
    lines = (re.sub(r"^\s*\*", "", line).strip() for line in text.splitlines())
    return " ".join(lines).strip().replace("|", "\\|")


def commented(header, start, pattern):
    """(comment, match) of each declaration that the pattern finds after start, up to its end."""
    text = (HEADERS / header).read_text()
    body = text[text.index(start):]
    body = body[:body.index("\n}") + 1]
    for match in re.finditer(r"/\*\*((?:(?!\*/).)*)\*/\s*((?:[^/;,{}]|,\n?)*?[;,\n])", body, re.S):
        if found := re.search(pattern, match[2]):
            yield comment(match[1]), found


def errors():
    return table([["code", "", "when"], ["`MUSTER_OK`", "0", "It worked."]] + [
        [f"`{found[1]}`", found[2], text]
        for text, found in commented("status.h", "typedef enum muster_status",
                                     r"(MUSTER_E\w+) = (\d+)")])


def options():
    return table([["option", ""]] + [
        [f"`{found[1] or found[2]}`", text]
        for text, found in commented("muster.h", "typedef struct muster_options",
                                     r"\(\*(\w+)\)|(\w+);")])


def things(binary):
    return json.loads(subprocess.run([binary, "list", "--json"], check=True,
                                     capture_output=True, text=True).stdout)["results"]


def listed(binary, kind, columns):
    rows = [[""] + [head for head, _ in columns]]
    for thing in things(binary):
        if thing["kind"] == kind and "cost" in thing:
            rows.append([f"`{thing.get('variants', thing['name'])}`"] +
                        [value(thing) for _, value in columns])
    return table(rows)


def barriers(binary):
    return listed(binary, "algorithm", [
        ("cost of an episode", lambda b: b["cost"]), ("source", lambda b: b["source"]),
        ("completion runs in", lambda b: b["champion"]),
        ("splits", lambda b: "yes" if b["splits"] else "")])


def locks(binary):
    return listed(binary, "lock", [
        ("executed by", lambda l: l["executed_by"]), ("transfers, contended", lambda l: l["cost"]),
        ("fair", lambda l: "yes" if l["fair"] else ""), ("source", lambda l: l["source"])])


def rules(binary):
    auto, = (thing for thing in things(binary) if "rules" in thing)
    return table([["", "when", "takes", "since"]] + [
        [str(number), rule["when"], f"`{rule['takes']}`", rule["since"]]
        for number, rule in enumerate(auto["rules"], 1)])


def parameters(binary):
    return table([["parameter", "", "range", "meaning"]] + [
        [f"`{thing['name']}`" + (" (optional)" if thing["optional"] else ""), thing["unit"],
         f"{thing['from']:g} to {thing['to']:g}", thing["about"]]
        for thing in things(binary) if thing["kind"] == "parameter"])


OF_MUSTER = {"barriers": barriers, "locks": locks, "rules": rules, "parameters": parameters}


def made(name, binary):
    """The text of a marker; None: it cannot be made here."""
    if name in OF_MUSTER:
        return OF_MUSTER[name](binary) if binary else None
    if name == "machines":
        return "\n".join(f"- *{key}:* {text}" for key, text in machines().items())
    if name in ("errors", "options"):
        return {"errors": errors, "options": options}[name]()
    return result(name)


def rewritten(text, binary):
    def fill(match):
        new = made(match[2], binary)
        return match[0] if new is None else f"{match[1]}{new}\n{match[4]}"
    return re.sub(r"(<!-- made: ([a-z0-9-]+) -->\n)(.*?)(<!-- end -->)", fill, text, flags=re.S)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--muster", metavar="BINARY")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    asked = parser.parse_args()
    stale = False
    for page in asked.pages or sorted(DOC.glob("*.md")):
        text = page.read_text()
        new = rewritten(text, asked.muster)
        if new != text and asked.check:
            print(f"{page} is stale: run doc/tables.py --muster build/release/muster")
            stale = True
        elif new != text:
            page.write_text(new)
            print(page)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
