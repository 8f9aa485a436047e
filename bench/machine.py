"""The machine that the figures are of, and the versions of what made them."""

import os
import pathlib
import platform
import subprocess

from bench.loads.tools import tools


def machine():
    model = next(
        (
            line.partition(":")[2].strip()
            for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    guest = ", a guest under QEMU" if os.environ.get("IPOVERBS_IN_GUEST") else ""
    return f"{model}, {len(os.sched_getaffinity(0))} CPUs{guest}"


def commit(project):
    """A guest sees another owner's checkout, in which git refuses to look: the host says it."""
    given = os.environ.get("IPOVERBS_COMMIT")
    if given:
        return given
    done = subprocess.run(
        ["git", "-C", project, "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def describe(project, program, contestants):
    versions = {tool: v for tool, v in tools().items() if v}
    for contestant in contestants:
        versions |= {name: v for name, v in contestant.versions().items() if v}
    done = subprocess.run([program, "version"], capture_output=True, text=True, check=False)
    versions["ipoverbs"] = done.stdout.strip().splitlines()[0] if done.stdout.strip() else "unknown"
    return {
        "machine": machine(),
        "kernel": platform.release(),
        "versions": versions,
        "commit": commit(project),
    }
