"""Two SoftRoCE devices on the two ends of one veth pair.

Both ends are in this network namespace, because rdma_rxe of Linux 6.1 knows no other; TUN interfaces and
programs are in namespaces of their own. An underlay MTU of 4500 gives RoCE its largest path MTU, 4096; 1500 gives 1024.
"""

from bench.world import SIDES, World, command


class RxeWorld(World):
    name = "rxe"
    device = "rdma"
    underlay_mtus = (4500, 1500)
    underlay_interface = {"a": "ipov-rxe-a", "b": "ipov-rxe-b"}
    rdma_device = {"a": "rxe_a", "b": "rxe_b"}

    def _place(self, side, role):
        """Daemons, and programs that speak verbs themselves, run where the devices are."""
        return [] if role in ("daemon", "verbs") else super()._place(side, role)

    def make(self):
        for module in ("rdma_rxe", "rdma_ucm"):
            command("modprobe", "-q", module)
        near, far = (self.underlay_interface[side] for side in SIDES)
        command("ip", "link", "add", near, "type", "veth", "peer", "name", far)
        command("sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0")
        for side in SIDES:
            interface = self.underlay_interface[side]
            # Without these the kernel drops, at one end, what comes from an address of the other end, since
            # both are its own.
            command("sysctl", "-qw", f"net.ipv4.conf.{interface}.accept_local=1", f"net.ipv4.conf.{interface}.rp_filter=0",
                    f"net.ipv6.conf.{interface}.accept_dad=0")
            command("ip", "address", "add", f"{self.underlay_address[side]}/24", "dev", interface)
            command("ip", "link", "set", interface, "mtu", str(self.underlay_mtus[0]), "up")
            command("rdma", "link", "add", self.rdma_device[side], "type", "rxe", "netdev", interface)
        self._add_namespaces()

    def remove(self):
        self._remove_namespaces()
        for side in SIDES:
            command("rdma", "link", "delete", self.rdma_device[side], check=False)
        command("ip", "link", "delete", self.underlay_interface["a"], check=False)

    def set_underlay_mtu(self, mtu):
        for side in SIDES:
            command("ip", "link", "set", self.underlay_interface[side], "mtu", str(mtu))
