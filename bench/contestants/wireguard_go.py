"""WireGuard in user space, with its own cipher (ChaCha20-Poly1305), which it can't do without.

The control sockets of all wireguard-go of a machine lie in one folder, by the name of the interface. So each
side's interface is made under a name of its own, and renamed to the world's.
"""

import subprocess

from bench.contestants.base import Contestant, Failed
from bench.debian import install, version
from bench.world import OTHER, SIDES, command

PORT = 51820
OVERHEAD = 60  # outer IPv4, UDP and WireGuard's header and tag


class WireguardGo(Contestant):
    name = "wireguard-go"
    package = "wireguard-go"

    def missing(self):
        return super().missing() or install("wireguard-tools", "wg")

    def versions(self):
        return super().versions() | {"wireguard-tools": version("wireguard-tools")}

    def mtus(self, world, underlay_mtu):
        # A UDP payload over IPv4 is at most 65507 bytes, 32 of them WireGuard's, and packets are padded to 16
        # bytes; 65472 does not get through all the same.
        return [65456, 65000, 60000, 32000, 8900, underlay_mtu - OVERHEAD]

    def up(self, world, setting):
        keys = {side: command("wg", "genkey").strip() for side in SIDES}
        public = {side: _public_key(keys[side]) for side in SIDES}
        for side in SIDES:
            world.start(side, ["wireguard-go", "--foreground", _first_name(world, side)])
        for side in SIDES:
            self._configure(world, side, keys[side], public[OTHER[side]])
            world.command(side, "ip", "link", "set", _first_name(world, side), "name", world.tun)
            world.set_tun(side, setting["overlay_mtu"])

    def _configure(self, world, side, key, peer):
        file = world.work / f"wireguard-{side}.key"
        file.write_text(key + "\n", encoding="ascii")
        file.chmod(0o600)
        words = ["wg", "set", _first_name(world, side), "listen-port", str(PORT), "private-key", str(file),
                 "peer", peer, "allowed-ips", f"{world.overlay4[OTHER[side]]}/32",
                 "endpoint", f"{world.underlay_address[OTHER[side]]}:{PORT}"]
        if not world.within(5, lambda: _succeeds(world, side, words)):
            raise Failed(f"wireguard-go can't be configured: {world.ended_daemon() or 'wg set fails'}")


def _first_name(world, side):
    return f"{world.tun}-{side}"


def _public_key(key):
    return subprocess.run(["wg", "pubkey"], input=key, capture_output=True, text=True, check=True).stdout.strip()


def _succeeds(world, side, words):
    try:
        world.command(side, *words)
    except RuntimeError:
        return False
    return True
