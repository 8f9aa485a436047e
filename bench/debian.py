"""Debian packages: which version is here, and installing one that is not."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import time

from bench.progress import say


def version(package):
    """Of an installed package, or None."""
    done = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", package],
                          capture_output=True, text=True, check=False)
    state, _, found = done.stdout.partition(" ")
    return found if done.returncode == 0 and state == "installed" else None


def install(package, program=None):
    """Why `program` (default: the package's name) can't be had, or None. Installs the package if that is all it takes."""
    if shutil.which(program or package):
        return None
    if os.path.exists("/run/guest"):
        return f"{program or package} is not installed on the host"
    say(f"installing Debian's package {package}")
    with _no_new_services():
        words = ["install", "--yes", "--no-install-recommends", package]
        reason = apt_get(*words)
        if reason:
            apt_get("update")  # the lists may be old, or missing
            reason = apt_get(*words)
    if reason:
        return f"apt-get can't install {package}: {reason}"
    return None if shutil.which(program or package) else f"Debian's package {package} has no {program or package}"


def apt_get(*words):
    """Why it failed, or None. Waits for others: apt does that for dpkg's lock alone, not for the one on its lists."""
    for _ in range(60):
        done = subprocess.run(["apt-get", "-q", "-o", "DPkg::Lock::Timeout=600", *words],
                              env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return None
        if "Could not get lock" not in done.stderr:
            break
        time.sleep(5)
    return (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[-1]


@contextlib.contextmanager
def _no_new_services(policy=pathlib.Path("/usr/sbin/policy-rc.d")):
    """What is installed to be measured stays a program: netserver, for one, would from then on serve everybody who asks.
    invoke-rc.d(8) and deb-systemd-invoke ask this script, where there is one; 101 forbids."""
    ours = not policy.exists()
    if ours:
        policy.write_text("#!/bin/sh\nexit 101\n", encoding="ascii")
        policy.chmod(0o755)
    try:
        yield
    finally:
        if ours:
            policy.unlink(missing_ok=True)
