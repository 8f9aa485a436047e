"""The underlay itself: the kernel alone, for the reader to know. Its MTU is what the overlay's should be."""

from bench.contestants.base import Contestant
from bench.world import SIDES, SoftWorld


class Veth(Contestant):
    name = "veth"
    offloads = "the kernel's own"

    @property
    def far_address(self):
        return SoftWorld.underlay_address["b"]

    @property
    def near_address(self):
        return SoftWorld.underlay_address["a"]

    def up(self, world, setting):
        for side in SIDES:
            world.command(side, "ip", "link", "set", "veth0", "mtu", str(setting["overlay_mtu"]))

    def down(self, world):
        """The runner sets the underlay's MTU before each arm."""
