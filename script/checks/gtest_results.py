#!/usr/bin/env python3
"""Turns what ctest and GoogleTest recorded into one line a test case.

    gtest_results.py PREFIX FOLDER_OF_GTEST_XML [CTEST_JUNIT]

prints `PASS PREFIX/SUITE.CASE`, `FAIL PREFIX/SUITE.CASE: why` or `SKIP PREFIX/SUITE.CASE: why`. A
program that died, or timed out, before it recorded anything fails as a whole.
"""

import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def one_line(text):
    return " ".join((text or "").split())[:200]


def print_cases(prefix, xml):
    failed = 0
    for suite in ElementTree.parse(xml).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            name = f"{prefix}/{case.get('classname')}.{case.get('name')}"
            failure, skipped = case.find("failure"), case.find("skipped")
            if failure is not None:
                failed += 1
                print(f"FAIL {name}: {one_line(failure.get('message'))}")
            elif skipped is not None:
                # GoogleTest's message is FILE:LINE, then the reason.
                why = (skipped.get("message") or "").split("\n", 1)[-1]
                print(f"SKIP {name}: {one_line(why) or 'no reason given'}")
            elif case.get("status") == "run":
                print(f"PASS {name}")
    return failed


def print_program(prefix, program, recorded):
    name, status = program.get("name"), program.get("status")
    failed = print_cases(prefix, recorded.pop(name)) if name in recorded else None
    if status == "run" and failed is None:
        print(f"PASS {prefix}/{name}")
    elif status in ("notrun", "disabled"):
        skipped = program.find("skipped")
        why = skipped.get("message") if skipped is not None else "ctest did not run it"
        print(f"SKIP {prefix}/{name}: {one_line(why)}")
    elif status != "run" and not failed:
        print(f"FAIL {prefix}/{name}: the program ended badly or took too long")


def main():
    prefix, folder, *junit = sys.argv[1:]
    recorded = {path.stem: path for path in pathlib.Path(folder).glob("*.xml")}
    for path in junit:
        for program in ElementTree.parse(path).getroot().iter("testcase"):
            print_program(prefix, program, recorded)
    for path in recorded.values():
        print_cases(prefix, path)


if __name__ == "__main__":
    main()
