"""Two hosts, a and b, on one machine: network namespaces joined by a veth pair.

    with SoftWorld(work) as world:
        world.set_underlay_mtu(9000)
        world.start("b", ["netserver", "-D"], role="load")
        done = world.run("a", ["netperf", ...], timeout=20)     # .status, .stdout, .stderr

Side a sends, b receives. `role` is "daemon" for what belongs to the contestant, "load" for the rest, and "verbs" for
loads that need the RDMA devices of an RdmaWorld (rxe_world.py): CPU time is accounted to (side, role), and
`stop_daemons` and `stop_loads` end them. Every process dies with this one. The overlay's interface is `world.tun` on
both sides.
"""

import itertools
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from bench.cpu import Account, best_accountant
from bench.process import Process

SIDES = ("a", "b")
OTHER = {"a": "b", "b": "a"}
ROLES = ("daemon", "load", "verbs")
PREFIX = "ipov-bench"


def command(*argv, check=True):
    """Runs to its end, on no account; what it printed."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip()}")
    return done.stdout


def remove_leftovers():
    """Namespaces of a benchmark that was killed."""
    for name in command("ip", "netns", "list").split("\n"):
        name = name.split(" ")[0]
        owner = name.removeprefix(f"{PREFIX}-").split("-")[0]
        if name.startswith(f"{PREFIX}-") and owner.isdigit() and not os.path.exists(f"/proc/{owner}"):
            command("ip", "netns", "delete", name, check=False)


class World:
    """What both kinds of world share: SoftWorld here, RxeWorld in rxe_world.py."""

    any_underlay_mtu = True
    tun = "ipov0"
    overlay4 = {"a": "10.99.0.1", "b": "10.99.0.2"}
    overlay6 = {"a": "fd99::1", "b": "fd99::2"}
    underlay_address = {"a": "10.77.0.1", "b": "10.77.0.2"}

    def __init__(self, program):
        self.program = program  # ipoverbs
        self.netns = {side: f"{PREFIX}-{os.getpid()}-{self.name}-{side}" for side in SIDES}
        self.work = pathlib.Path(tempfile.mkdtemp(prefix=f"{PREFIX}-"))
        self._accountant = best_accountant()
        self._processes = {role: [] for role in ROLES}
        self._numbers = itertools.count()

    def __enter__(self):
        remove_leftovers()
        try:
            self.make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *unused):
        self.stop_loads()
        self.stop_daemons()
        self.remove()
        self._accountant.close()
        shutil.rmtree(self.work, ignore_errors=True)

    @property
    def accounting(self):
        """By what CPU time is known."""
        return self._accountant.method

    # Processes

    def _place(self, side, role):
        """Words before a command: where the side's daemon, or its programs, run."""
        return ["nsenter", f"--net=/run/netns/{self.netns[side]}"]

    def start(self, side, argv, role="daemon", env=None):
        name = self.work / f"{next(self._numbers)}-{pathlib.Path(argv[0]).name}-{side}.out"
        process = Process([*self._place(side, role), *argv], name, self._accountant, f"{side}-{role}", env)
        self._processes[role].append(process)
        return process

    def run(self, side, argv, timeout, role="load", env=None):
        """To its end; `status` is None if it took longer than `timeout` seconds, and was killed."""
        process = self.start(side, argv, role, env)
        process.status = process.wait(timeout)
        process.stop()
        self._processes[role].remove(process)
        return process

    def _stop(self, role):
        processes, self._processes[role] = self._processes[role], []
        for process in processes:
            process.stop()
            process.output.unlink(missing_ok=True)
            process.errors.unlink(missing_ok=True)

    def stop_daemons(self):
        self._stop("daemon")

    def stop_loads(self):
        self._stop("load")
        self._stop("verbs")

    def ended_daemon(self):
        """What the first daemon that has ended said last; None while all run."""
        return next((p.last_words() for p in self._processes["daemon"] if p.ended() is not None), None)

    def account(self):
        return Account(lambda: {(s, r): self._accountant.seconds(f"{s}-{r}") for s in SIDES for r in ROLES})

    # Network

    def within(self, seconds, condition):
        """Whether it came true before the time was over."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() >= end:
                return False
            time.sleep(0.02)
        return True

    def command(self, side, *argv, check=True):
        """On the side where programs run, on no account; what it printed."""
        return command("nsenter", f"--net=/run/netns/{self.netns[side]}", *argv, check=check)

    def ping(self, side, address, mtu=84, seconds=1):
        """One packet of `mtu` bytes, unfragmented, there and back."""
        done = subprocess.run(
            [
                "nsenter",
                f"--net=/run/netns/{self.netns[side]}",
                "ping",
                "-n",
                "-q",
                "-M",
                "do",
                "-c",
                "1",
                "-W",
                str(seconds),
                "-s",
                str(mtu - 28),
                address,
            ],
            capture_output=True,
            check=False,
        )
        return done.returncode == 0

    def has_interface(self, side, name):
        return bool(self.command(side, "ip", "-br", "link", "show", "dev", name, check=False))

    def listens(self, side, port):
        """Whether a TCP socket listens on the port where the side's programs run."""
        return bool(self.command(side, "ss", "-Hltn", f"sport = :{port}").strip())

    def has_socket(self, side, port):
        """Whether a UDP socket has the port, connected or not."""
        return bool(self.command(side, "ss", "-Huan", f"sport = :{port}").strip())

    def set_tun(self, side, mtu):
        """For contestants that leave their TUN interface without address and down."""
        self.command(side, "ip", "address", "replace", f"{self.overlay4[side]}/24", "dev", self.tun)
        self.command(side, "ip", "link", "set", self.tun, "mtu", str(mtu), "up")

    def _add_namespaces(self):
        for side in SIDES:
            command("ip", "netns", "add", self.netns[side])
            # No duplicate address detection: an address is ready at once. And what one connection learnt of
            # the path is not the next contestant's.
            self.command(
                side, "sysctl", "-qw", "net.ipv6.conf.default.accept_dad=0", "net.ipv4.tcp_no_metrics_save=1"
            )
            self.command(side, "ip", "link", "set", "lo", "up")

    def _remove_namespaces(self):
        for side in SIDES:
            command("ip", "netns", "delete", self.netns[side], check=False)


class SoftWorld(World):
    """Each host a namespace with underlay and overlay in it: for the software device and everything on UDP."""

    name = device = "soft"  # in reports; and as the daemon's option
    underlay_mtus = (9000, 1500)  # the first is the usual one
    underlay_interface = {"a": "veth0", "b": "veth0"}

    def make(self):
        self._add_namespaces()
        command(
            "ip",
            "link",
            "add",
            "veth0",
            "netns",
            self.netns["a"],
            "type",
            "veth",
            "peer",
            "name",
            "veth0",
            "netns",
            self.netns["b"],
        )
        for side in SIDES:
            self.command(side, "ip", "address", "add", f"{self.underlay_address[side]}/16", "dev", "veth0")
            self.command(side, "ip", "link", "set", "veth0", "up")

    def remove(self):
        self._remove_namespaces()

    def set_underlay_mtu(self, mtu):
        for side in SIDES:
            self.command(side, "ip", "link", "set", "veth0", "mtu", str(mtu))
