#include "daemon/help.h"

#include <fmt/format.h>

namespace ipoverbs::daemon {

std::string_view general_help() {
  return R"(ipoverbs carries IP over RDMA verbs: a TUN interface with an MTU of up to 65520 whose
packets cross to other hosts as verbs sends, over InfiniBand, RoCE, iWARP and SoftRoCE; where there is
no RDMA, over a software device that speaks RoCEv2 on a UDP socket.

  ipoverbs up        run the daemon (in the foreground, until SIGTERM or Ctrl-C)
  ipoverbs status    show what a running daemon does
  ipoverbs devices   list the devices of this host and whether they can be used
  ipoverbs version   print the version

'ipoverbs COMMAND --help' explains a command, with examples.

Exit status: 0 success; 1 it ran and failed; 2 it did not start, because of its options or because
something they need is missing. One line on standard error says why.
)";
}

std::string up_help(std::string_view options) {
  return fmt::format(
      R"(Usage: ipoverbs up --underlay ADDRESS --address PREFIX --peer PEER [OPTION...]
       ipoverbs up --config FILE [OPTION...]

Runs the daemon: makes a TUN interface, connects to the peers over RDMA and carries IP between the
two until SIGTERM or Ctrl-C, after which nothing is left. Needs CAP_NET_ADMIN (root).

{}
Two hosts with an HCA or RoCE NIC, whose RDMA ports have the addresses 192.0.2.1 and 192.0.2.2:

  a# ipoverbs up --underlay 192.0.2.1 --address 10.99.0.1/24 --peer '192.0.2.2 10.99.0.2'
  b# ipoverbs up --underlay 192.0.2.2 --address 10.99.0.2/24 --peer '192.0.2.1 10.99.0.1'
  a# ping 10.99.0.2

The same without RDMA hardware: where the underlay address belongs to no RDMA device, the software
device is used. Or over SoftRoCE on an Ethernet interface eth0 (on both hosts first):

  # modprobe rdma_rxe
  # rdma link add rxe0 type rxe netdev eth0
  # ipoverbs devices

InfiniBand: the underlay is the address of a running IPoIB interface (ib0), through which the
connection manager resolves addresses; without IPoIB, name ports by GID, here and in --peer:

  a# ipoverbs up --underlay gid:fe80::2:c903:1:1 --address 10.99.0.1/24 \
       --peer 'gid:fe80::2:c903:1:2 10.99.0.2'

A configuration file has the same options as 'key = value' lines; '#' starts a comment:

  # /etc/ipoverbs.conf
  underlay = 192.0.2.1
  address = 10.99.0.1/24
  address = fd99::1/64
  peer = 192.0.2.2 10.99.0.2,fd99::2 name=b
  peer = 192.0.2.3:4756 10.99.3.0/24 name=c    # a network behind c

'ipoverbs up --config FILE --check' only says what is wrong with it.
)",
      options);
}

std::string status_help(std::string_view options) {
  return fmt::format(R"(Usage: ipoverbs status [OPTION...]

Shows what the daemon of interface ipov0, or of the interface or control socket named, does: device,
peers, sessions, and a counter for every packet carried or dropped. Directions are seen from this
host: tun_rx is read from the interface, peer_tx is sent to peers.

{}
  # ipoverbs status
  # ipoverbs status --json | jq '.peers[] | {{name, state}}'
)",
                     options);
}

std::string devices_help(std::string_view options) {
  return fmt::format(R"(Usage: ipoverbs devices [OPTION...]

Lists each port of each RDMA device, and the software device: its link, state, addresses, GIDs, path
MTU and limits, and whether ipoverbs can use it or why not. An address listed here is what
'ipoverbs up --underlay' and the peers' --peer take.

{}
If no RDMA device is listed although there is hardware: its kernel module (lsmod), /dev/infiniband,
and Debian's package ibverbs-providers are what is needed.
)",
                     options);
}

}  // namespace ipoverbs::daemon
