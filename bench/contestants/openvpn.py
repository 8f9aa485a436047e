"""Point to point over UDP without a cipher, a key or a digest: what is left is TUN to UDP and back."""

from bench.contestants.base import Contestant
from bench.contestants.socat import SOCKET_BUFFER
from bench.world import OTHER, SIDES


class Openvpn(Contestant):
    name = "openvpn"
    package = "openvpn"

    def mtus(self, world, underlay_mtu):
        return [65507, 65506, 65000, 60000, 32000, 8900, 1472]

    def up(self, world, setting):
        for side in SIDES:
            far = OTHER[side]
            # It can't force socket buffers: it gets no more than net.core.rmem_max and wmem_max allow.
            world.start(
                side,
                [
                    "openvpn",
                    "--dev-type",
                    "tun",
                    "--dev",
                    world.tun,
                    "--proto",
                    "udp4",
                    "--cipher",
                    "none",
                    "--auth",
                    "none",
                    "--local",
                    world.underlay_address[side],
                    "--remote",
                    world.underlay_address[far],
                    "--port",
                    "1194",
                    "--ifconfig",
                    world.overlay4[side],
                    world.overlay4[far],
                    "--tun-mtu",
                    str(setting["overlay_mtu"]),
                    "--mssfix",
                    "0",
                    "--fast-io",
                    "--sndbuf",
                    str(SOCKET_BUFFER),
                    "--rcvbuf",
                    str(SOCKET_BUFFER),
                ],
            )
