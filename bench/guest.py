"""A table measured in the guest that script/guest boots, where rdma_rxe is.

The same program runs there, and its JSON is taken over.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

from bench import report
from bench.progress import say

HERE = "rxe-here"  # the device's name for the program in the guest
BOOT_SECONDS, ARM_SECONDS, LOAD_SECONDS = 300, 60, 20  # generous: the guest is stopped after them


def limit(arms, rounds, seconds):
    """How long it may take."""
    loads = sum(len(arm.calls) for arm in arms)
    return BOOT_SECONDS + (rounds + 1) * (len(arms) * ARM_SECONDS + loads * (seconds + LOAD_SECONDS))


def measure(table, arms, session, part=None):
    """The table's content; where the guest fails, one that says so."""
    words = [
        table.name,
        "--device",
        HERE,
        "--json",
        "/run/guest/out/report.json",
        "--rounds",
        str(session.rounds()),
        "--seconds",
        str(session.seconds(table)),
    ]
    words += ["--part", part] if part else []
    say(f"{table.name}: booting the guest")
    with tempfile.TemporaryDirectory(prefix="ipov-bench-guest-") as out:
        done = subprocess.run(
            [
                session.project / "script/guest",
                "--timeout",
                str(limit(arms, session.rounds(), session.seconds(table))),
                "--out",
                out,
                "--env",
                f"IPOVERBS_COMMIT={session.report['commit']}",
                "--env",
                "PYTHONDONTWRITEBYTECODE=1",
                "python3",
                "-m",
                "bench",
                *words,
            ],
            env=os.environ | {"IPOVERBS_BUILD": str(session.build)},
            stdout=sys.stderr,
            check=False,
        )
        path = pathlib.Path(out, "report.json")
        content = (
            report.read(path)["tables"][table.name]
            if path.exists()
            else {"setup": session.setup(table, "rxe", "nothing", []), "rows": [], "missing": []}
        )
    if done.returncode != 0:
        content["missing"].append(
            {
                "contestant": "ipoverbs",
                "setting": {"device": "rxe"},
                "reason": f"the guest ended with status {done.returncode}",
            }
        )
    return content
