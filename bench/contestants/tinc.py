"""tinc 1.0 in router mode over UDP, with its usual cipher and digest (aes-256-cbc, sha256)."""

from bench.contestants.base import Contestant, Failed
from bench.world import OTHER, SIDES, command

PORT = 655
NODES = {"a": "alpha", "b": "beta"}


class Tinc(Contestant):
    name = "tinc"
    package = "tinc"
    program = "tincd"

    def mtus(self, world, underlay_mtu):
        # It can be compiled for frames of 9018 bytes and of 1518, Ethernet's header and a tag included.
        return [9000, 1500, 1450, 1400]

    def up(self, world, setting):
        folders = {side: world.work / f"tinc-{side}" for side in SIDES}
        for side in SIDES:
            _write_configuration(world, side, folders[side])
        for side in SIDES:
            public = (folders[side] / "hosts" / NODES[side]).read_text(encoding="ascii")
            (folders[OTHER[side]] / "hosts" / NODES[side]).write_text(public, encoding="ascii")
        for side in SIDES:
            world.start(side, ["tincd", "--no-detach", "--config", str(folders[side]),
                               "--pidfile", str(folders[side] / "pid")])
        for side in SIDES:
            if not world.within(5, lambda: world.has_interface(side, world.tun)):
                raise Failed(f"tincd makes no interface: {world.ended_daemon()}")
            world.set_tun(side, setting["overlay_mtu"])


def _write_configuration(world, side, folder):
    """Once; the key pair is kept from then on."""
    hosts = folder / "hosts"
    if hosts.exists():
        return
    hosts.mkdir(parents=True)
    (folder / "tinc.conf").write_text(
        f"Name = {NODES[side]}\nConnectTo = {NODES[OTHER[side]]}\nInterface = {world.tun}\nMode = router\n"
        f"AddressFamily = ipv4\nBindToAddress = {world.underlay_address[side]} {PORT}\n", encoding="ascii")
    (hosts / NODES[side]).write_text(
        f"Address = {world.underlay_address[side]} {PORT}\nSubnet = {world.overlay4[side]}/32\n", encoding="ascii")
    command("tincd", "--config", str(folder), "--generate-keys=2048")
