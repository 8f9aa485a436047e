# shellcheck shell=bash
# The contestants of `script/bench peers`. Sourced by in-namespaces, after script/world.sh.
#
#   start_NAME SIDE MTU     begins what carries packets on SIDE; connect_NAME then does what both must be there for
#   mtus_NAME               the MTUs to try for "max", from the largest
#   package_NAME            the Debian package that it comes with, if it isn't ours
#   far_NAME                the address to measure to
#
# All of them run between the same two namespaces, with the overlay's addresses on an interface ipov0; a
# daemon's pid goes to daemon_pid[SIDE], so that stop_all ends it.

# What ipoverbs asks for its receiving socket. socat forces it as ipoverbs does (SO_RCVBUFFORCE, SO_SNDBUFFORCE);
# openvpn can't, and gets no more than net.core.rmem_max and wmem_max allow.
socket_buffer=4194304

# shellcheck disable=SC2034 # in-namespaces reads them by name
{
  mtus_ipoverbs=65520
  # A UDP payload over IPv4 is at most 65507 bytes.
  mtus_socat='65507 65000 60000 32000 8900 1472'
  mtus_openvpn='65507 65506 65000 60000 32000 8900 1472'
  package_openvpn=openvpn package_socat=socat
  far_ipoverbs=${overlay4[b]} far_openvpn=${overlay4[b]} far_socat=${overlay4[b]} far_veth=${underlay_address[b]}
}

# in_background SIDE COMMAND...: in SIDE's namespace, as its daemon.
in_background() {
  # shellcheck disable=SC2086 # words
  (exec ${to_underlay[$1]} setpriv --pdeathsig KILL "${@:2}" >> "$work/$1.log" 2>&1) &
  # shellcheck disable=SC2034 # world.sh's
  daemon_pid[$1]=$!
}

start_ipoverbs() { start "$1" --device soft --mtu "$2"; }
connect_ipoverbs() { :; }

# Without a cipher, a key or a digest: what is left is TUN to UDP and back.
start_openvpn() {
  in_background "$1" openvpn --dev-type tun --dev "$tun" --proto udp4 --cipher none --auth none \
    --local "${underlay_address[$1]}" --remote "${underlay_address[${other[$1]}]}" --port 1194 \
    --ifconfig "${overlay4[$1]}" "${overlay4[${other[$1]}]}" \
    --tun-mtu "$2" --mssfix 0 --fast-io --sndbuf "$socket_buffer" --rcvbuf "$socket_buffer"
}
connect_openvpn() { :; }

# The interfaces go up once both sockets are there: the first packet would else meet a closed port, and
# socat ends at the ICMP error.
start_socat() { # SIDE
  local ends="UDP4:${underlay_address[${other[$1]}]}:5000,bind=${underlay_address[$1]}:5000"
  # SOL_SOCKET is 1, SO_RCVBUFFORCE 33, SO_SNDBUFFORCE 32.
  in_background "$1" socat -b 65536 "TUN,tun-name=$tun,iff-no-pi" \
    "$ends,setsockopt-int=1:33:$socket_buffer,setsockopt-int=1:32:$socket_buffer"
}
connect_socat() { # MTU
  local side
  for side in a b; do within 5 udp_port "$side" 5000 || return 1; done
  for side in a b; do
    overlay "$side" ip address add "${overlay4[$side]}/24" dev "$tun" || return 1
    overlay "$side" ip link set "$tun" mtu "$1" up || return 1
  done
}
udp_port() { overlay "$1" ss -Hun "sport = :$2" | grep -q .; } # SIDE PORT

# The underlay itself: the kernel alone.
start_veth() { :; }
connect_veth() { :; }
