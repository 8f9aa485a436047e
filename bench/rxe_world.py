"""Worlds of RDMA devices: both in this network namespace; TUN interfaces and programs are in namespaces of their own.

RxeWorld makes two SoftRoCE devices on the two ends of one veth pair (rdma_rxe of Linux 6.1 knows no other
namespace than this). An underlay MTU of 4500 gives RoCE its largest path MTU, 4096; 1500 gives 1024. HardwareWorld
takes two devices that are there, as they are: two ports of one machine, joined by a cable.
"""

import json

from bench.world import SIDES, World, command


def _set(sysctls):
    for name, value in sysctls.items():
        command("sysctl", "-qw", f"{name}={value}", check=False)


class NoSuchDevice(Exception):
    pass


class RdmaWorld(World):
    device = "rdma"
    _previous = {}

    def _place(self, side, role):
        """Daemons, and programs that speak verbs themselves, run where the devices are."""
        return [] if role in ("daemon", "verbs") else super()._place(side, role)

    def _accept_own_addresses(self):
        """Without these the kernel drops, at one end, what comes from an address of the other end: both are its own."""
        wanted = {"net.ipv4.conf.all.rp_filter": "0"}
        for interface in self.underlay_interface.values():
            wanted |= {f"net.ipv4.conf.{interface}.accept_local": "1", f"net.ipv4.conf.{interface}.rp_filter": "0"}
        self._previous = {name: command("sysctl", "-n", name).strip() for name in wanted}
        _set(wanted)

    def remove(self):
        _set(self._previous)
        self._remove_namespaces()


class RxeWorld(RdmaWorld):
    name = "rxe"
    underlay_mtus = (4500, 1500)
    underlay_interface = {"a": "ipov-rxe-a", "b": "ipov-rxe-b"}
    rdma_device = {"a": "rxe_a", "b": "rxe_b"}

    def make(self):
        for module in ("rdma_rxe", "rdma_ucm"):
            command("modprobe", "-q", module)
        near, far = (self.underlay_interface[side] for side in SIDES)
        command("ip", "link", "add", near, "type", "veth", "peer", "name", far)
        self._accept_own_addresses()
        for side in SIDES:
            interface = self.underlay_interface[side]
            command("sysctl", "-qw", f"net.ipv6.conf.{interface}.accept_dad=0")
            command("ip", "address", "add", f"{self.underlay_address[side]}/24", "dev", interface)
            command("ip", "link", "set", interface, "mtu", str(self.underlay_mtus[0]), "up")
            command("rdma", "link", "add", self.rdma_device[side], "type", "rxe", "netdev", interface)
        self._add_namespaces()

    def remove(self):
        super().remove()
        for side in SIDES:
            command("rdma", "link", "delete", self.rdma_device[side], check=False)
        command("ip", "link", "delete", self.underlay_interface["a"], check=False)

    def set_underlay_mtu(self, mtu):
        for side in SIDES:
            command("ip", "link", "set", self.underlay_interface[side], "mtu", str(mtu))


class HardwareWorld(RdmaWorld):
    """`names`: the devices of sides a and b. Their interfaces have addresses and an MTU already, and keep them."""

    any_underlay_mtu = False

    def __init__(self, program, names):
        self.name = ",".join(names)
        self.rdma_device = dict(zip(SIDES, names))
        ports = json.loads(command(program, "devices", "--json"))["ports"]
        port = {
            side: next((p for p in ports if p["device"] == name and p["usable"] and p["addresses"]), None)
            for side, name in self.rdma_device.items()
        }
        for side, found in port.items():
            if found is None:
                raise NoSuchDevice(
                    f"{self.rdma_device[side]} is no usable RDMA device with an address; see ipoverbs devices"
                )
        self.underlay_interface = {side: found["interface"] for side, found in port.items()}
        # An IPv4 address, if there is one: the tools beside us are asked by it.
        self.underlay_address = {
            side: min(found["addresses"], key=lambda a: ":" in a) for side, found in port.items()
        }
        self.underlay_mtus = (
            json.loads(command("ip", "-j", "link", "show", "dev", self.underlay_interface["a"]))[0]["mtu"],
        )
        super().__init__(program)

    def make(self):
        self._accept_own_addresses()
        self._add_namespaces()

    def set_underlay_mtu(self, mtu):
        """It is as it is: a table's arms with another underlay MTU are refused (runner.py)."""
