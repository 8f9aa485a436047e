"""Debian packages: which version is here, and installing one that is not."""

import os
import shutil
import subprocess

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
    done = subprocess.run(
        ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=600", "install", "--yes", "--no-install-recommends", package],
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[-1]
        return f"apt-get can't install {package}: {last}"
    return None if shutil.which(program or package) else f"Debian's package {package} has no {program or package}"
