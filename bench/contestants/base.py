"""What contestants have in common; the package's own text describes the interface."""

from bench.debian import install, version
from bench.world import SIDES


class Failed(Exception):
    """It should have worked, and did not."""


class Refused(Exception):
    """The contestant can't do what the setting asks for."""


class Contestant:
    name = None
    needs_rdma = False  # runs where the world's RDMA devices are, if they are apart
    offloads = "none"  # of its TUN
    package = None
    program = None

    @property
    def far_address(self):
        return "10.99.0.2"

    @property
    def near_address(self):
        return "10.99.0.1"

    def missing(self):
        return install(self.package, self.program) if self.package else None

    def versions(self):
        return {self.package: version(self.package)} if self.package else {}

    def mtus(self, world, underlay_mtu):
        return [underlay_mtu]

    def largest_mtu(self, world, underlay_mtu):
        reason = "no packet gets through"
        for mtu in self.mtus(world, underlay_mtu):
            setting = {"underlay_mtu": underlay_mtu, "overlay_mtu": mtu}
            try:
                self.up(world, setting)
                if world.within(10, lambda: self.ready(world, setting)):
                    return mtu
            except Failed as error:
                reason = str(error)
            finally:
                self.down(world)
        raise Failed(reason)

    def up(self, world, setting):
        raise NotImplementedError

    def ready(self, world, setting):
        """A packet as large as the MTU crosses and comes back; Failed if a daemon has ended."""
        ended = world.ended_daemon()
        if ended:
            raise Failed(f"{self.name} ended: {ended}")
        return world.ping("a", self.far_address, setting["overlay_mtu"])

    def down(self, world):
        world.stop_daemons()
        for side in SIDES:
            if not world.within(5, lambda: not world.has_interface(side, world.tun)):
                raise RuntimeError(f"{world.tun} stays behind on {side}")
