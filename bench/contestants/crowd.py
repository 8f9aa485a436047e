"""Further peers for a daemon: lines of its configuration, and as many real daemons as are to be connected.

Those that are connected live on side b, each a daemon with a TUN interface and an underlay address of its own.
Those that are only configured have addresses that nobody has: the daemon dials them in vain for as long as it runs.
"""

from bench.contestants.base import Failed

CONNECTED_NET, ABSENT_NET = 1, 5  # third byte of 10.77.x.y, from here on


def _address(net, i):
    return f"10.77.{net + i // 250}.{i % 250 + 1}"


def _overlay(net, i):
    return f"10.99.{net + i // 250}.{i % 250 + 1}"


class Crowd:
    """`configured` and `connected` count the usual peer of side b too."""

    def __init__(self, world, configured, connected):
        self._world = world
        self._connected = connected - 1
        self._absent = configured - connected

    def config(self):
        """Lines for side a's daemon."""
        lines = []
        for net, count in ((CONNECTED_NET, self._connected), (ABSENT_NET, self._absent)):
            lines += [f"peer = {_address(net, i)} {_overlay(net, i)}" for i in range(count)]
        return "".join(line + "\n" for line in lines)

    def start(self, device):
        world = self._world
        for i in range(self._connected):
            address = _address(CONNECTED_NET, i)
            world.command("b", "ip", "address", "add", f"{address}/16", "dev", world.underlay_interface["b"])
            world.start(
                "b",
                [
                    world.program,
                    "up",
                    "--underlay",
                    address,
                    "--device",
                    device,
                    "--tun",
                    f"crowd{i}",
                    "--tun-netns",
                    world.netns["b"],
                    "--mtu",
                    "1500",
                    "--address",
                    f"{_overlay(CONNECTED_NET, i)}/32",
                    "--routes",
                    "off",
                    "--peer",
                    f"{world.underlay_address['a']} {world.overlay4['a']}",
                    "--receive-buffers",
                    "8",
                    "--control",
                    str(world.work / f"crowd{i}.sock"),
                    "--log-level",
                    "warn",
                ],
                role="daemon",
            )

    def stop(self):
        world = self._world
        world.stop_daemons()
        for i in range(self._connected):
            world.command(
                "b",
                "ip",
                "address",
                "delete",
                f"{_address(CONNECTED_NET, i)}/16",
                "dev",
                world.underlay_interface["b"],
                check=False,
            )

    def wait(self, status, seconds=60):
        """Until side a has as many connected peers as it shall."""
        wanted = self._connected + 1
        count = lambda: sum(p["state"] == "connected" for p in status()["peers"])  # noqa: E731
        if not self._world.within(seconds, lambda: count() >= wanted):
            raise Failed(f"{count()} of {wanted} peers were connected after {seconds} s")
