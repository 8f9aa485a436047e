#!/usr/bin/env python3
"""Prints, one a line, the definitions and include paths that a build uses.

    include_flags.py COMPILE_COMMANDS_JSON
"""

import json
import shlex
import sys


def flags(command):
    words = iter(shlex.split(command))
    for word in words:
        if word in ("-isystem", "-I", "-D"):
            yield (word, next(words))
        elif word.startswith(("-I", "-D")):
            yield (word,)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        commands = json.load(file)
    for flag in dict.fromkeys(flag for entry in commands for flag in flags(entry["command"])):
        print(*flag, sep="\n")


if __name__ == "__main__":
    main()
