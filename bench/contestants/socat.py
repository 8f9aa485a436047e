"""A TUN interface joined to a UDP socket."""

from bench.contestants.base import Contestant, Failed
from bench.world import OTHER, SIDES

PORT = 5000
SOCKET_BUFFER = 4194304  # what ipoverbs asks for; forced as it does: SO_RCVBUFFORCE is 33, SO_SNDBUFFORCE 32


class Socat(Contestant):
    name = "socat"
    package = "socat"

    def mtus(self, world, underlay_mtu):
        return [65507, 65000, 60000, 32000, 8900, 1472]  # a UDP payload over IPv4 is at most 65507 bytes

    def up(self, world, setting):
        for side in SIDES:
            near, far = world.underlay_address[side], world.underlay_address[OTHER[side]]
            world.start(side, [
                "socat", "-b", "65536", f"TUN,tun-name={world.tun},iff-no-pi",
                f"UDP4:{far}:{PORT},bind={near}:{PORT},setsockopt-int=1:33:{SOCKET_BUFFER},setsockopt-int=1:32:{SOCKET_BUFFER}"])
        # The interfaces go up once both sockets are there: the first packet would else meet a closed port, and
        # socat ends at the ICMP error.
        for side in SIDES:
            if not world.within(5, lambda: world.has_socket(side, PORT)):
                raise Failed(f"socat has no socket: {world.ended_daemon()}")
        for side in SIDES:
            world.set_tun(side, setting["overlay_mtu"])
