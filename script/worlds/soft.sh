# shellcheck shell=bash
# shellcheck disable=SC2034 # variables are world.sh's
# Two hosts, each a network namespace of its own with underlay and overlay in it, joined by a veth pair,
# on the software device. Underlay MTU 9000: path MTU 4096.

underlay_address=([a]=10.77.0.1 [b]=10.77.0.2)
underlay_interface=([a]=veth0 [b]=veth0)
rdma_device=([a]=soft [b]=soft)
underlay_mtu=${UNDERLAY_MTU:-9000}
to_underlay=([a]="${to_overlay[a]}" [b]="${to_overlay[b]}")

world_device() { echo "the software device, RoCEv2 on UDP sockets"; }

world_up() {
  local side
  add_namespaces
  ip link add veth0 netns "${netns[a]}" mtu "$underlay_mtu" type veth \
    peer name veth0 netns "${netns[b]}" mtu "$underlay_mtu"
  for side in a b; do
    underlay "$side" ip address add "${underlay_address[$side]}/24" dev veth0
    underlay "$side" ip link set veth0 up
  done
}

world_down() { remove_namespaces; }

world_why_not() {
  if [[ $EUID -ne 0 ]]; then
    echo "it needs root"
  elif [[ ! -c /dev/net/tun ]]; then
    echo "there is no /dev/net/tun"
  fi
}
