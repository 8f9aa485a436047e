// Which work a TUN leaves to the other side of its descriptor.
#pragma once

namespace ipoverbs::tun {

// In the reading direction: what a packet read from the TUN may leave undone, because the kernel
// was told that the reader can finish it. In the writing direction: what a written packet may leave
// to the kernel. The names are those of TUNSETOFFLOAD (include/uapi/linux/if_tun.h).
struct Offloads {
  bool checksum = false;  // TUN_F_CSUM: partial checksums, VIRTIO_NET_HDR_F_NEEDS_CSUM
  bool tso4 = false;      // TUN_F_TSO4: TCP over IPv4 super-packets
  bool tso6 = false;      // TUN_F_TSO6: TCP over IPv6 super-packets
  bool tso_ecn = false;   // TUN_F_TSO_ECN: super-packets whose first segment carries CWR
  bool uso = false;       // TUN_F_USO4 and TUN_F_USO6, which the kernel takes only together (6.2)

  friend bool operator==(const Offloads&, const Offloads&) = default;
};

// What both allow, made consistent: nothing without checksum, tso_ecn only with a TSO (the kernel
// refuses other combinations).
[[nodiscard]] constexpr Offloads intersect(const Offloads& a, const Offloads& b) {
  Offloads both;
  both.checksum = a.checksum && b.checksum;
  both.tso4 = both.checksum && a.tso4 && b.tso4;
  both.tso6 = both.checksum && a.tso6 && b.tso6;
  both.tso_ecn = (both.tso4 || both.tso6) && a.tso_ecn && b.tso_ecn;
  both.uso = both.checksum && a.uso && b.uso;
  return both;
}

// What a TUN can do in each direction, found once by trying (probe_offloads()).
struct ProbedOffloads {
  Offloads read;   // TUNSETOFFLOAD takes it
  Offloads write;  // a written packet of this kind is taken
};

}  // namespace ipoverbs::tun
