// Which virtio headers a TUN refuses with EINVAL, whatever its kernel (6.1 takes a csum_start of 0
// on a super-packet, 6.18 does not). Relied on by tun/virtio_net.h: check() must name each of them
// before the kernel does.
#include <cerrno>

#include "tests/platform/platform.h"

namespace ipoverbs::tun {

namespace {

struct Spoilt {
  const char* what;
  Record (*good)();
  void (*spoil)(Record&);
};

constexpr Spoilt kRefused[] = {
    {"no packet", udp4_partial, [](Record& r) { r.packet.clear(); }},
    {"IP version 5", udp4_partial, [](Record& r) { r.packet[0] = std::byte{0x55}; }},
    {"checksum outside", udp4_partial, [](Record& r) { r.header.csum_start = Le16(29); }},
    {"hdr_len above the packet", tcp4_super_packet,
     [](Record& r) { r.header.hdr_len = Le16(2541); }},
    {"unknown gso_type", tcp4_super_packet, [](Record& r) { r.header.gso_type = 2; }},
    {"gso_size 0", tcp4_super_packet, [](Record& r) { r.header.gso_size = Le16(0); }},
    {"gso_size 65535", tcp4_super_packet, [](Record& r) { r.header.gso_size = Le16(65535); }},
    {"USO without NEEDS_CSUM", udp4_super_packet, [](Record& r) { r.header.flags = 0; }},
    {"USO of 250 datagrams", udp4_super_packet, [](Record& r) { r.header.gso_size = Le16(1); }},
};

}  // namespace

void tun_refused_headers(Assumption& assumption) {
  const Fd queue = open_queue("t0", QueueMode::Single, Attach::Create);
  set_link_up("t0", true);
  assumption.equal("good TCP", write_record(queue.get(), tcp4_super_packet()), 0);
  for (const auto& [what, good, spoil] : kRefused) {
    Record record = good();
    spoil(record);
    assumption.equal(what, write_record(queue.get(), record), EINVAL);
  }
}

}  // namespace ipoverbs::tun
