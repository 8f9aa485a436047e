"""The kernel's own tunnel: Ethernet frames in UDP (RFC 7348), without a daemon, for the reader to know."""

from bench.contestants.base import Contestant
from bench.world import OTHER, SIDES, command

VNI, PORT = 42, 4789
OVERHEAD = 50  # outer IPv4, UDP and VXLAN headers, and the inner Ethernet header


class Vxlan(Contestant):
    name = "vxlan"
    offloads = "the kernel's own"

    def missing(self):
        try:
            command("ip", "link", "add", "ipov-try", "type", "vxlan", "id", str(VNI), "dstport", str(PORT))
        except RuntimeError as error:
            return f"this kernel has no VXLAN: {error}"
        command("ip", "link", "delete", "ipov-try")
        return None

    def mtus(self, world, underlay_mtu):
        """The first is sent in fragments of the underlay."""
        return [65535 - OVERHEAD, underlay_mtu - OVERHEAD]

    def up(self, world, setting):
        for side in SIDES:
            # Bound to an address, not to a device: the latter would bound the MTU by the device's.
            world.command(side, "ip", "link", "add", world.tun, "type", "vxlan", "id", str(VNI),
                          "local", world.underlay_address[side], "remote", world.underlay_address[OTHER[side]],
                          "dstport", str(PORT))
            world.set_tun(side, setting["overlay_mtu"])

    def down(self, world):
        for side in SIDES:
            world.command(side, "ip", "link", "delete", world.tun, check=False)
        super().down(world)
