# shellcheck shell=bash
# The traffic crosses verbs: the underlay's bytes, and the device's packets where it counts them, grow by
# at least what the overlay carried.
start_both
packets() { # SIDE
  cat "/sys/class/infiniband/${rdma_device[$1]}/ports/1/hw_counters/sent_pkts"
}
counted=false
if [[ -e /sys/class/infiniband/${rdma_device[a]}/ports/1/hw_counters/sent_pkts ]]; then counted=true; fi
for side in a b; do
  to=${other[$side]}
  carried=$(tun_bytes "$to" rx) wire=$(wire_bytes "$side")
  $counted && sent=$(packets "$side")
  expect "TCP from $side" transfer "$side" "${overlay4[$to]}" 8000000
  carried=$(($(tun_bytes "$to" rx) - carried)) wire=$(($(wire_bytes "$side") - wire))
  ((carried > 8000000)) || fail "the TUN interface of $to counts only $carried bytes"
  ((wire >= carried)) || fail "from $side: $wire bytes on the wire for $carried of the overlay"
  if $counted; then
    sent=$(($(packets "$side") - sent))
    # At most 4096 bytes a packet.
    ((sent * 4096 >= carried)) || fail "from $side: $sent RoCE packets for $carried bytes"
  fi
done
