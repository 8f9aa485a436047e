#!/usr/bin/env python3
"""Prints, one a line, the project's headers of which a build proves that they compile alone: those that the
compiler has read before anything else, by being named first in the first file of what it compiled as one.

    first_headers.py COMPILE_COMMANDS_JSON
"""

import json
import pathlib
import re
import sys

INCLUDE = re.compile(r'^#include (["<])(.*)[">]$', re.MULTILINE)


def first_header(path):
    """The project's header that `path` names first; None if it names none or another before."""
    first = INCLUDE.search(path.read_text(encoding="utf-8"))
    if first is None or first[1] == "<":
        return None
    # A unity file (IPOVERBS_UNITY in cmake/Ipoverbs.cmake) names the files that are compiled as one.
    return first_header(pathlib.Path(first[2])) if first[2].endswith(".cc") else first[2]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        commands = json.load(file)
    headers = {first_header(pathlib.Path(entry["directory"], entry["file"])) for entry in commands}
    print(*sorted(headers - {None}), sep="\n")


if __name__ == "__main__":
    main()
