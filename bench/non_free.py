"""Debian's component non-free, which has netperf: a sources file of our own makes it known to apt.

apt gives up altogether where two entries of one archive name different keys, so the file takes over archive, suite
and key from the entry that the machine has for main. It stays, and is the only thing here that changes apt's
set-up; take it away by `rm /etc/apt/sources.list.d/ipoverbs-non-free.list && apt-get update`.
"""

import pathlib
import re
import subprocess
from typing import NamedTuple

from bench.debian import apt_get, install
from bench.progress import say

FILE = pathlib.Path("/etc/apt/sources.list.d/ipoverbs-non-free.list")


class Source(NamedTuple):
    uri: str
    suite: str
    components: tuple
    key: str  # "" where apt trusts it by other means

    def line(self, component):
        return f"deb {f'[signed-by={self.key}] ' if self.key else ''}{self.uri} {self.suite} {component}\n"


def one_line_sources(text):
    """Of a file in the style of sources.list(5): deb [options] uri suite component..."""
    for line in text.splitlines():
        found = re.match(r"deb\s+(?:\[([^]]*)\]\s+)?(\S+)\s+(\S+)\s+([^#]+)", line)
        if found:
            options, uri, suite, components = found.groups()
            key = re.search(r"signed-by=(\S+)", options or "")
            yield Source(uri, suite, tuple(components.split()), key.group(1) if key else "")


def deb822_sources(text):
    """Of a file in the style of deb822(5): stanzas of fields."""
    for stanza in re.split(r"\n\s*\n", text):
        lines = [line for line in stanza.splitlines() if not line.startswith("#")]
        fields = dict(re.findall(r"(?m)^([\w-]+):[ \t]*(.*(?:\n[ \t].*)*)", "\n".join(lines)))
        if "deb" not in fields.get("Types", "").split() or fields.get("Enabled", "yes").strip() == "no":
            continue
        for uri in fields.get("URIs", "").split():
            for suite in fields.get("Suites", "").split():
                components = tuple(fields.get("Components", "").split())
                yield Source(uri, suite, components, fields.get("Signed-By", "").strip())


def sources(folder="/etc/apt"):
    for path in [pathlib.Path(folder, "sources.list"), *sorted(pathlib.Path(folder, "sources.list.d").glob("*"))]:
        if path.suffix in (".list", ".sources") and path.is_file():
            read = deb822_sources if path.suffix == ".sources" else one_line_sources
            yield from read(path.read_text(encoding="utf-8"))


def wanted_line(known, codename):
    """The line that is missing: "" if none is. None where nothing known tells how it should read."""
    ours = [s for s in known if s.suite in (codename, "stable") and re.search(r"/debian/?$", s.uri)]
    if any("non-free" in s.components for s in ours):
        return ""
    main = next((s for s in ours if "main" in s.components and "\n" not in s.key), None)
    return main.line("non-free") if main else None


def _codename():
    text = pathlib.Path("/etc/os-release").read_text(encoding="utf-8")
    found = re.search(r"(?m)^VERSION_CODENAME=(\S+)", text)
    return found.group(1) if found else "stable"


def _know_non_free():
    """Why apt can't be told of it, or None."""
    line = wanted_line(list(sources()), _codename())
    if line is None:
        return "no apt source of Debian's main to take archive and key from"
    if line:
        say(f"adding Debian's non-free component to apt: {FILE}: {line.strip()}")
        try:
            FILE.write_text(line, encoding="ascii")
        except OSError as error:
            return f"no apt source for Debian's non-free: {error}"
    reason = apt_get("update")
    if reason and line:
        FILE.unlink()
    return reason and f"apt-get update: {reason}"


def install_non_free(package, program=None):
    """As debian.install(), for a package of non-free; apt hears of that component only if it has to."""
    if _candidate(package):
        return install(package, program)
    return _know_non_free() or install(package, program)


def _candidate(package):
    done = subprocess.run(["apt-cache", "policy", package], capture_output=True, text=True, check=False)
    return re.search(r"Candidate: (?!\(none\))", done.stdout) is not None
