"""Ours: two daemons. Every key of a setting becomes an option; what the daemon doesn't know, it refuses by itself."""

import json
import pathlib
import subprocess

from bench.contestants.base import Contestant, Failed, Refused
from bench.contestants.crowd import Crowd
from bench.world import OTHER, SIDES

# Words of a setting that say more than one option: every packet is copied, its sum in the same pass or in one of its own.
_CHECKSUM = {
    "full-copied": ["--checksum", "full", "--copy-break", "65535"],
    "full-separate": ["--checksum", "full-separate", "--copy-break", "65535"],
}

_OPTIONS = {
    "overlay_mtu": lambda v: ["--mtu", str(v)],
    "superpackets": lambda v: ["--offloads", v],
    "batching": lambda v: [] if v == "on" else ["--packets-per-message", "1", "--messages-per-doorbell", "1"],
    "packing": lambda v: [] if v == "on" else ["--packets-per-message", "1"],
    "chaining": lambda v: [] if v == "on" else ["--messages-per-doorbell", "1"],
    "coalescing": lambda v: [] if v == "on" else ["--soft-faults", "no-gro"],
    "checksum": lambda v: _CHECKSUM.get(v, ["--checksum", v]),
    "copy_break": lambda v: ["--copy-break", str(v)],
    "workers": lambda v: ["--workers", str(v)],
}


class Ipoverbs(Contestant):
    name = "ipoverbs"
    needs_rdma = True
    offloads = "super-packets and partial checksums, unless super-packets are off"

    def versions(self):
        return {}  # the commit says it

    def mtus(self, world, underlay_mtu):
        return [65520]

    def __init__(self):
        self._crowd = None
        self._daemon = {}

    def options(self, world, side, setting):
        far = OTHER[side]
        words = [
            "--underlay",
            world.underlay_address[side],
            "--device",
            world.device,
            "--tun",
            world.tun,
            "--tun-netns",
            world.netns[side],
            "--address",
            f"{world.overlay4[side]}/24",
            "--address",
            f"{world.overlay6[side]}/64",
            "--peer",
            f"{world.underlay_address[far]} {world.overlay4[far]}/32,{world.overlay6[far]}/128",
            "--control",
            self.control(world, side),
            "--log-level",
            "warn",
        ]
        for key, value in setting.items():
            words += _OPTIONS[key](value) if key in _OPTIONS else []
        return words

    def control(self, world, side):
        return str(world.work / f"{side}.sock")

    def _check(self, world, words):
        """The daemon's own words on options that it doesn't take."""
        done = subprocess.run([world.program, "up", *words, "--check"], capture_output=True, text=True, check=False)
        if done.returncode == 2:
            raise Refused(done.stderr.strip().splitlines()[-1].removeprefix("ipoverbs: "))

    def up(self, world, setting):
        self._crowd = None
        words = {side: self.options(world, side, setting) for side in SIDES}
        if "peers" in setting:
            self._crowd = Crowd(world, setting["peers"], setting["connected"])
            config = world.work / "a.conf"
            config.write_text(self._crowd.config(), encoding="ascii")
            words["a"] += ["--config", str(config)]
        for side in SIDES:
            self._check(world, words[side])
        for side in SIDES:
            self._daemon[side] = world.start(side, [world.program, "up", *words[side]])
        if self._crowd:
            self._crowd.start(world.device)

    def ready(self, world, setting):
        if not super().ready(world, setting):
            return False
        if self._crowd:
            self._crowd.wait(lambda: self.status(world, "a"))
        return True

    def down(self, world):
        if self._crowd:
            self._crowd.stop()
        super().down(world)

    def memory(self, side):
        """Bytes of the side's daemon that are in memory."""
        for line in pathlib.Path(f"/proc/{self._daemon[side].pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise Failed("the daemon has no memory")

    def status(self, world, side):
        done = subprocess.run(
            [world.program, "status", "--json", "--control", self.control(world, side)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise Failed(f"no status of side {side}: {done.stderr.strip()}")
        return json.loads(done.stdout)
