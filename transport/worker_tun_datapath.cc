#include <unistd.h>

#include <cerrno>

#include "transport/segment.h"
#include "transport/too_big.h"
#include "transport/worker.h"

namespace ipoverbs::transport {

namespace {

// The work that `header` leaves to the kernel and without which the kernel would take the packet.
std::optional<Capability> work_of(const tun::VirtioNetHeader& header) {
  if ((header.gso_type & tun::VIRTIO_NET_HDR_GSO_ECN) != 0) return Capability::TsoEcn;
  switch (header.gso_type) {
    case tun::VIRTIO_NET_HDR_GSO_TCPV4:
      return Capability::Tso4;
    case tun::VIRTIO_NET_HDR_GSO_TCPV6:
      return Capability::Tso6;
    case tun::VIRTIO_NET_HDR_GSO_UDP_L4:
      return Capability::Uso;
    default:
      break;
  }
  if ((header.flags & tun::VIRTIO_NET_HDR_F_NEEDS_CSUM) != 0) return Capability::PartialChecksum;
  return std::nullopt;
}

// drivers/net/tun.c: EIO while the interface is down, EINVAL for a header that it does not take.
Counter drop_counter(int error) {
  return error == EIO      ? Counter::RxDropTunDown
         : error == EINVAL ? Counter::RxDropTunRefused
                           : Counter::RxDropTunError;
}

}  // namespace

void Worker::write_tun(std::span<std::byte> tun_bytes, Link& link) noexcept {
  const auto header = load<tun::VirtioNetHeader>(tun_bytes);
  const auto work = work_of(header);
  const bool withdrawn = work && refusals_.is_withdrawn(*work);
  int error = withdrawn ? EINVAL : write_record(tun_bytes);
  if (error == EINVAL && work) {
    if (!withdrawn) on_refused(*work, link);
    error = write_in_software(tun_bytes, header);
  }
  if (error != 0) return counters_.add(drop_counter(error));
  const std::size_t bytes = tun_bytes.size() - sizeof(tun::VirtioNetHeader);
  counters_.add(Counter::TunTxPackets);
  counters_.add(Counter::TunTxBytes, bytes);
  peer_gauges_[link.peer].rx_packets.add(1);
  peer_gauges_[link.peer].rx_bytes.add(bytes);
}

int Worker::write_record(std::span<const std::byte> tun_bytes) noexcept {
  return ::write(tun_, tun_bytes.data(), tun_bytes.size()) < 0 ? errno : 0;
}

void Worker::on_refused(Capability work, Link& link) noexcept {
  counters_.add(Counter::RxOffloadRefused);
  if (refusals_.on_refused(work)) {
    report({Report::Kind::Withdrawn, link.id, {}, refusals_.withdrawn()});
  }
}

void Worker::answer_too_big(const Link& link, std::span<const std::byte> packet,
                            std::size_t largest) noexcept {
  const std::span<std::byte> record(segment_);
  store(record, 0, tun::VirtioNetHeader{});
  const std::size_t n =
      write_too_big(record.subspan(sizeof(tun::VirtioNetHeader)), packet, largest, link.mtu);
  if (n == 0 || !too_big_budget_.take(now_)) return;
  if (write_record(record.first(sizeof(tun::VirtioNetHeader) + n)) == 0) {
    counters_.add(Counter::TxTooBigTold);
  }
}

int Worker::write_in_software(std::span<std::byte> tun_bytes,
                              const tun::VirtioNetHeader& header) noexcept {
  counters_.add(Counter::RxOffloadSoftware);
  const std::span<std::byte> packet = tun_bytes.subspan(sizeof header);
  if (header.gso_type != tun::VIRTIO_NET_HDR_GSO_NONE) return write_segments(packet, header);
  const csum::ChecksumPlace place{header.csum_start.value(), header.csum_offset.value()};
  if (csum::complete(packet, place) != csum::Completion::done) return EINVAL;
  store(tun_bytes, 0, tun::VirtioNetHeader{});
  return write_record(tun_bytes);
}

int Worker::write_segments(std::span<const std::byte> packet,
                           const tun::VirtioNetHeader& header) noexcept {
  const std::span<std::byte> record(segment_);
  store(record, 0, tun::VirtioNetHeader{});
  Segments segments(packet, header);
  while (const std::size_t n = segments.next(record.subspan(sizeof header))) {
    const int error = write_record(record.first(sizeof header + n));
    if (error != 0) return error;
  }
  return 0;
}

}  // namespace ipoverbs::transport
