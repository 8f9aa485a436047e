"""The command line of `script/bench`, whose own comment is its help."""

import argparse
import fcntl
import os
import signal
import sys

from bench import report, tables
from bench.guest import HERE
from bench.progress import say
from bench.rxe_world import NoSuchDevice
from bench.session import Session


def parse(argv):
    parser = argparse.ArgumentParser(prog="script/bench", add_help=False)
    parser.add_argument("table", choices=("all", "report", *tables.NAMES))
    parser.add_argument("file", nargs="?")
    parser.add_argument("--seconds", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--report")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--part", help=argparse.SUPPRESS)  # what of a table the guest shall measure
    options = parser.parse_args(argv)
    if (options.table == "report") != bool(options.file):
        parser.error(
            "report wants the JSON file of an earlier run"
            if options.table == "report"
            else f"what is {options.file!r}?"
        )
    if options.device not in ("auto", "soft", "rxe", HERE) and options.device.count(",") != 1:
        parser.error(f"--device {options.device}: neither auto, soft nor rxe, nor two RDMA devices as mlx5_0,mlx5_1")
    for name in ("seconds", "rounds"):
        if getattr(options, name) is not None and getattr(options, name) < 1:
            parser.error(f"--{name} is at least 1")
    return options


def end_by_signal(*unused):
    raise SystemExit(143)


def alone():
    """Two benchmarks at once would measure each other."""
    lock = open("/run/lock/ipov-bench.lock", "w", encoding="ascii")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say("another benchmark is running: waiting for it")
        fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def main():
    options = parse(sys.argv[1:])
    if options.table == "report":
        report.show(report.read(options.file), options.report)
        return
    if os.geteuid() != 0:
        sys.exit("bench: it needs root: it makes network namespaces")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end_by_signal)
    with alone():
        session = Session(options)
        names = tables.NAMES if options.table == "all" else (options.table,)
        for name in names:
            try:
                session.run(name)
            except NoSuchDevice as error:
                sys.exit(f"bench: {error}")
        report.show(session.report, options.report, quiet=options.device == HERE)


main()
