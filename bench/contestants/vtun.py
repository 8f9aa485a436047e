"""vtun over UDP, without encryption and compression: TUN to UDP and back."""

from bench.contestants.base import Contestant, Failed
from bench.world import SIDES

PORT = 5001
SESSION = "bench"


class Vtun(Contestant):
    name = "vtun"
    package = "vtun"
    program = "vtund"

    def mtus(self, world, underlay_mtu):
        return [2048, 2000, 1500, 1450]  # it is compiled for frames of 2048 bytes (VTUN_FRAME_SIZE)

    def up(self, world, setting):
        common = {side: ["vtund", "-n", "-P", str(PORT), "-f", _configuration(world, side, setting["overlay_mtu"])]
                  for side in SIDES}
        world.start("b", [*common["b"], "-s", "-L", world.underlay_address["b"]])
        if not world.within(5, lambda: world.listens("b", PORT)):
            raise Failed(f"vtund does not listen: {world.ended_daemon()}")
        world.start("a", [*common["a"], SESSION, world.underlay_address["b"]])
        for side in SIDES:
            if not world.within(5, lambda: _is_up(world, side)):
                raise Failed(f"vtund brings no interface up: {world.ended_daemon()}")


def _is_up(world, side):
    return ",UP" in world.command(side, "ip", "-br", "link", "show", "dev", world.tun, check=False)


def _configuration(world, side, mtu):
    """The path of a file. vtund itself has the interface brought up, as it ends when it meets one that is down;
    and without a link-local address, for which IPv6 would send something before the other side is up."""
    commands = ["addrgenmode none", f"mtu {mtu}", "up"]
    file = world.work / f"vtund-{side}.conf"
    file.write_text(
        f"options {{\n  port {PORT};\n  timeout 10;\n  ip /sbin/ip;\n}}\n"
        f"{SESSION} {{\n  passwd {SESSION};\n  type tun;\n  device {world.tun};\n  proto udp;\n  compress no;\n"
        "  encrypt no;\n  keepalive no;\n  persist no;\n  up {\n"
        f"    ip \"address add {world.overlay4[side]}/24 dev %%\";\n"
        + "".join(f"    ip \"link set %% {command}\";\n" for command in commands) + "  };\n}\n", encoding="ascii")
    return str(file)
