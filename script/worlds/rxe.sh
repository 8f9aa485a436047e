# shellcheck shell=bash
# shellcheck disable=SC2034 # variables are world.sh's
# Two SoftRoCE devices on the two ends of one veth pair, all in this network namespace, because
# rdma_rxe of Linux 6.1 knows no other; the TUN interfaces are in namespaces of their own. An underlay
# MTU of 4500 gives RoCE its largest path MTU, 4096.

underlay_address=([a]=10.77.0.1 [b]=10.77.0.2)
underlay_interface=([a]=ipov-rxe-a [b]=ipov-rxe-b)
rdma_device=([a]=rxe_a [b]=rxe_b)
underlay_mtu=4500

world_device() { echo "rdma_rxe (${rdma_device[a]}, ${rdma_device[b]}) of Linux $(uname -r)"; }

add_rdma_device() { # SIDE
  rdma link add "${rdma_device[$1]}" type rxe netdev "${underlay_interface[$1]}"
}

world_up() {
  local side
  ip link add "${underlay_interface[a]}" mtu $underlay_mtu type veth \
    peer name "${underlay_interface[b]}" mtu $underlay_mtu
  for side in a b; do
    # Without these the kernel drops, at one end, what comes from an address of the other end, since
    # both are its own.
    sysctl -qw "net.ipv4.conf.${underlay_interface[$side]}.accept_local=1" \
      "net.ipv4.conf.${underlay_interface[$side]}.rp_filter=0" \
      "net.ipv6.conf.${underlay_interface[$side]}.accept_dad=0"
    ip address add "${underlay_address[$side]}/24" dev "${underlay_interface[$side]}"
    ip link set "${underlay_interface[$side]}" up
    add_rdma_device "$side"
  done
  # The larger of an interface's rp_filter and this one counts.
  rp_filter=$(sysctl -n net.ipv4.conf.all.rp_filter)
  [[ $rp_filter == 0 ]] || sysctl -qw net.ipv4.conf.all.rp_filter=0
  add_namespaces
}

world_down() {
  local side
  remove_namespaces
  for side in a b; do rdma link delete "${rdma_device[$side]}" 2> /dev/null || true; done
  ip link delete "${underlay_interface[a]}" 2> /dev/null || true
  [[ ${rp_filter:-0} == 0 ]] || sysctl -qw "net.ipv4.conf.all.rp_filter=$rp_filter"
}

world_why_not() {
  if [[ $EUID -ne 0 ]]; then
    echo "it needs root"
  elif ! modprobe -q rdma_rxe || ! modprobe -q rdma_ucm; then
    echo "this kernel has no rdma_rxe"
  elif [[ ! -c /dev/infiniband/rdma_cm ]]; then
    echo "there is no /dev/infiniband/rdma_cm"
  fi
}
