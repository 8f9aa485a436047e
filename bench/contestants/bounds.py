"""Our bounds, programs of bench/bounds: what a tunnel could reach here if its own work cost nothing.

copy1 is one process that copies between the two TUN interfaces; being one, all its CPU time is accounted to side
a. ring2 is two processes joined by rings in shared memory, the shape of two daemons. Super-packets are on unless
the setting says off; then whole packets of the MTU pass alone, as with `offloads = off` of ipoverbs.
"""

import pathlib

from bench.contestants.base import Contestant
from bench.world import SIDES

LARGEST_MTU = 65520  # ipoverbs' own


class Bound(Contestant):
    offloads = "super-packets and partial checksums, unless super-packets are off"

    def mtus(self, world, underlay_mtu):
        return [LARGEST_MTU]

    def missing(self):
        return None

    def versions(self):
        return {}

    def program_path(self, world):
        """build/PRESET/daemon/ipoverbs and build/PRESET/bench/bounds/NAME come from one build."""
        return str(pathlib.Path(world.program).parents[1] / "bench" / "bounds" / self.name)

    def options(self, world, setting):
        return ["--tun", world.tun, "--mtu", str(setting["overlay_mtu"]),
                "--superpackets", setting.get("superpackets", "on")]

    def end(self, world, side):
        return ["--netns", world.netns[side], "--address", f"{world.overlay4[side]}/24"]


class Copy1(Bound):
    name = "copy1"

    def up(self, world, setting):
        ends = [word for side in SIDES for word in self.end(world, side)]
        world.start("a", [self.program_path(world), *self.options(world, setting), *ends])


class Ring2(Bound):
    name = "ring2"

    def up(self, world, setting):
        socket = str(world.work / "ring2.sock")
        for side, meet in (("a", "--listen"), ("b", "--connect")):
            world.start(side, [self.program_path(world), *self.options(world, setting), *self.end(world, side),
                               meet, socket])
