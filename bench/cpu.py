"""Whose CPU time it was: processes belong to groups, and a group's time is asked for at any moment.

Where the machine has them, a group is a cgroup, so that nothing a process forks can escape: version 1's
cpuacct, or version 2's cpu.stat. Elsewhere /proc/PID/stat is added up, children that were waited for included;
a daemon's still running child is then missing.

What this can't know: work in softirq (veth, the IP stack, TCP's acknowledgements) is charged to whichever process it
happens to interrupt, or, in ksoftirqd and kernel threads, to nobody. On a veth pair the sender's system call carries
a packet far into the receiving side's stack: the sum of both sides says more than either.
"""

import os
import pathlib
import time

PARENT = "ipov-bench"


class Cgroups:
    """One folder a group below `root`; `read` takes a group's folder to its seconds."""

    def __init__(self, root, method, read):
        self.method = method
        self._parent = pathlib.Path(root, f"{PARENT}-{os.getpid()}")
        self._parent.mkdir(exist_ok=True)
        self._read = read

    def words(self, group):
        """What stands before a command, so that it belongs to the group from its first instruction on. A shell, not
        a function between fork and exec: for that Python has to copy itself, 50 ms each time on a virtual machine."""
        folder = self._parent / group
        folder.mkdir(exist_ok=True)
        return ["sh", "-c", 'echo 0 > "$0" && exec "$@"', str(folder / "cgroup.procs")]

    def started(self, group, pid):
        pass

    def ended(self, pid):
        pass

    def seconds(self, group):
        folder = self._parent / group
        return self._read(folder) if folder.exists() else 0.0

    def close(self):
        """An ended process leaves its cgroup a moment later."""
        for folder in [*self._parent.iterdir(), self._parent] if self._parent.exists() else []:
            if folder.is_dir():
                _remove(folder)


def _remove(folder):
    for _ in range(50):
        try:
            folder.rmdir()
            return
        except OSError:
            time.sleep(0.02)


def _v1_seconds(folder):
    return int((folder / "cpuacct.usage").read_text()) / 1e9


def _v2_seconds(folder):
    for line in (folder / "cpu.stat").read_text().splitlines():
        key, value = line.split()
        if key == "usage_usec":
            return int(value) / 1e6
    return 0.0


class ProcStat:
    """The way out where there is no cgroup to write to."""

    method = "/proc/PID/stat"

    def __init__(self):
        self._alive = {}
        self._past = {}

    def words(self, group):
        return []

    def started(self, group, pid):
        self._alive[pid] = group

    def ended(self, pid):
        """Called while the process is still there to be waited for."""
        group = self._alive.pop(pid, None)
        if group is not None:
            self._past[group] = self._past.get(group, 0.0) + _process_seconds(pid)

    def seconds(self, group):
        return self._past.get(group, 0.0) + sum(_process_seconds(p) for p, g in self._alive.items() if g == group)

    def close(self):
        pass


def _process_seconds(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    # utime, stime, cutime and cstime are fields 14 to 17; the second, in parentheses, may hold blanks.
    return sum(int(x) for x in text.rpartition(")")[2].split()[11:15]) / os.sysconf("SC_CLK_TCK")


def best_accountant(mounts="/proc/mounts"):
    found = {}
    for line in pathlib.Path(mounts).read_text().splitlines():
        _, folder, kind, options = line.split()[:4]
        if kind == "cgroup" and "cpuacct" in options.split(","):
            found.setdefault("cgroup v1", (folder, _v1_seconds))
        elif kind == "cgroup2":
            found.setdefault("cgroup v2", (folder, _v2_seconds))
    for method in ("cgroup v1", "cgroup v2"):
        if method in found:
            try:
                return Cgroups(found[method][0], method, found[method][1])
            except OSError:
                continue
    return ProcStat()


class Account:
    """A stretch of time, and the CPU seconds of each (side, role) within it."""

    def __init__(self, read):
        self._read = read

    def __enter__(self):
        self._before = self._read()
        self._start = time.monotonic()
        return self

    def __exit__(self, *unused):
        self.elapsed = time.monotonic() - self._start
        self.seconds = {key: value - self._before.get(key, 0.0) for key, value in self._read().items()}
        return False

    def side(self, side):
        return sum(value for (of, _), value in self.seconds.items() if of == side)

    def metrics(self, payload_bytes, seconds=None):
        """Of a transfer from side a to b. `seconds`: how long the bytes flowed, where that isn't all of it."""
        seconds = seconds or self.elapsed
        kilobytes = payload_bytes / 1024
        daemons = {side: self.seconds.get((side, "daemon"), 0.0) / seconds for side in "ab"}
        result = {"daemon_cpu": sum(daemons.values()), "daemon_cpu_send": daemons["a"],
                  "daemon_cpu_receive": daemons["b"]}
        if kilobytes:
            demands = {side: 1e6 * self.side(side) / kilobytes for side in "ab"}
            result |= {"service_demand": sum(demands.values()), "service_demand_send": demands["a"],
                       "service_demand_receive": demands["b"]}
        return result
