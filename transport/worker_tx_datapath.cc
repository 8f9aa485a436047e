#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transport/fragment.h"
#include "transport/packet.h"
#include "transport/worker.h"

namespace ipoverbs::transport {

namespace {

// Where packets come alone, one turn in so many looks for a second one. Not a matter of time: how
// long a turn takes depends on the machine.
constexpr std::uint32_t kLookAgain = 8;

// What the far end must be able to deliver for this header, as bits of Capability.
std::uint32_t needed_capabilities(const tun::VirtioNetHeader& header) {
  std::uint32_t needed = 0;
  const auto need = [&needed](Capability c) { needed |= std::to_underlying(c); };
  if ((header.flags & tun::VIRTIO_NET_HDR_F_NEEDS_CSUM) != 0) need(Capability::PartialChecksum);
  if ((header.gso_type & tun::VIRTIO_NET_HDR_GSO_ECN) != 0) need(Capability::TsoEcn);
  switch (header.gso_type & ~tun::VIRTIO_NET_HDR_GSO_ECN) {
    case tun::VIRTIO_NET_HDR_GSO_TCPV4:
      need(Capability::Tso4);
      break;
    case tun::VIRTIO_NET_HDR_GSO_TCPV6:
      need(Capability::Tso6);
      break;
    case tun::VIRTIO_NET_HDR_GSO_UDP_L4:
      need(Capability::Uso);
      break;
    default:
      break;
  }
  return needed;
}

// Bytes of the largest IP packet that will come out of this one at the far end: itself, or a
// segment.
std::size_t largest_segment(const tun::VirtioNetHeader& header, std::span<const std::byte> packet) {
  if (header.gso_type == tun::VIRTIO_NET_HDR_GSO_NONE) return packet.size();
  const std::size_t headers = tun::true_header_length(packet, header);
  return std::min(packet.size(), headers + header.gso_size.value());
}

// Whether the packet in `frame` may be fragmented: a super-packet would have to be cut twice.
bool may_fragment_frame(std::span<const std::byte> frame) {
  const auto header = load<FrameHeader>(frame);
  return header.offload.gso_type == tun::VIRTIO_NET_HDR_GSO_NONE &&
         may_fragment(frame.subspan(kFrameHeader, header.length.value()));
}

// Completes the checksum of the packet in `frame`, if that is due. False if it does not fit.
bool complete(std::span<std::byte> frame, const std::optional<csum::ChecksumPlace>& checksum) {
  return !checksum ||
         csum::complete(frame.subspan(kFrameHeader), *checksum) == csum::Completion::done;
}

}  // namespace

int Worker::transmit(TimePoint now, bool from_tun) noexcept {
  for (const auto& link : links_) {
    if (!link->waiting.empty()) drain_waiting(*link);
  }
  const int work = from_tun ? read_tun() : 0;
  for (const auto& link : links_) {
    if (link->active && !link->waits_for_first && link->grantor.due() &&
        link->sends.grant_place().empty()) {
      send_control(*link);
    }
    flush(*link, now);
  }
  return work;
}

bool Worker::may_read() const noexcept {
  if (tun_failed_ || !reading_.has(kMaxFrame)) return false;
  // With no session to stall, packets are read and dropped with a reason.
  bool any_active = false;
  for (const auto& link : links_) {
    if (!link->active) continue;
    if (link->can_send()) return true;
    any_active = true;
  }
  return !any_active;
}

int Worker::read_tun() noexcept {
  // To find the queue empty costs a system call, a tenth of what a lone packet takes.
  const bool looks = packets_in_batches_ || ++lone_turns_ % kLookAgain == 0;
  const std::uint32_t most = looks ? kTunBatch : 1;
  std::uint32_t packets = 0;
  bool stalled = false;
  while (packets < most) {
    if (!may_read() || !reading_.ensure(kMaxFrame)) {
      counters_.add(reading_.has(kMaxFrame) ? Counter::TxStallCredit : Counter::TxStallMemory);
      stalled = true;
      break;
    }
    const std::span<std::byte> frame = reading_.next(kMaxFrame);
    const ssize_t n = ::read(tun_, frame.subspan(kTunOffset).data(), frame.size() - kTunOffset);
    if (n < 0) {
      if (errno != EAGAIN && errno != EINTR) {
        counters_.add(Counter::TunReadError);
        tun_failed_ = true;
      }
      break;
    }
    ++packets;
    if (static_cast<std::size_t>(n) <= sizeof(tun::VirtioNetHeader)) {
      counters_.add(Counter::TunRxPackets);
      counters_.add(Counter::TxDropMalformed);
      continue;
    }
    route(frame, static_cast<std::size_t>(n) - sizeof(tun::VirtioNetHeader));
  }
  // A stall after one packet says nothing of whether more waited.
  if (looks && (packets > 1 || !stalled)) packets_in_batches_ = packets > 1;
  packets_left_ = packets == kTunBatch;
  return static_cast<int>(packets);
}

void Worker::route(std::span<std::byte> frame, std::size_t packet_length) noexcept {
  const std::span<const std::byte> packet = frame.subspan(kFrameHeader, packet_length);
  counters_.add(Counter::TunRxPackets);
  counters_.add(Counter::TunRxBytes, packet_length);
  const auto addresses = read_addresses(packet);
  if (!addresses) return counters_.add(Counter::TxDropMalformed);
  finish_packet_frame(frame, packet_length);
  const auto checksum = checksum_to_complete(load<FrameHeader>(frame).offload);
  if (checksum) set_flags(frame, kChecksumComplete);
  const std::span<std::byte> whole = frame.first(frame_size(packet_length));
  if (addresses->is_for_all()) {
    if (options_.multicast == Multicast::Off) return counters_.add(Counter::TxDropMulticast);
    return send_to_all(whole, checksum);
  }
  const Target target = routes_.lookup(addresses->destination);
  switch (target.kind()) {
    case Target::Kind::None:
      return counters_.add(Counter::TxDropNoRoute);
    case Target::Kind::Own:
      return counters_.add(Counter::TxDropOwnAddress);
    case Target::Kind::Peer:
      break;
  }
  Link* link = link_to(target.index(), packet);
  if (link == nullptr) return counters_.add(Counter::TxDropPeerDown);
  if (packet_length > link->mtu.value() && may_fragment_frame(whole)) {
    return send_fragments(*link, whole, checksum);
  }
  send(*link, whole, checksum);
}

Link* Worker::link_to(PeerIndex peer, std::span<const std::byte> packet) noexcept {
  const std::span<Link* const> links = by_peer_[peer];
  if (links.empty()) return nullptr;
  return links.size() == 1 ? links.front() : links[flow_hash(packet) % links.size()];
}

void Worker::send_to_all(std::span<std::byte> frame,
                         const std::optional<csum::ChecksumPlace>& checksum) noexcept {
  // Here, once: what is complete must not be summed again for the next peer.
  if (!complete(frame, checksum)) return counters_.add(Counter::TxDropChecksum);
  const std::span<const std::byte> packet =
      frame.subspan(kFrameHeader, load<FrameHeader>(frame).length.value());
  std::uint64_t peers = 0;
  for (PeerIndex peer = 0; peer < by_peer_.size(); ++peer) {
    Link* link = link_to(peer, packet);
    if (link == nullptr) continue;
    // Each message writes its own grants into the frame, so each has a frame of its own.
    if (++peers > 1 && !reading_.ensure(frame.size())) {
      counters_.add(Counter::TxDropQueueFull);
      continue;
    }
    const std::span<std::byte> own = peers == 1 ? frame : reading_.next(frame.size());
    if (own.data() != frame.data()) std::ranges::copy(frame, own.begin());
    send(*link, own, std::nullopt);
  }
  if (peers == 0) counters_.add(Counter::TxDropPeerDown);
  if (peers > 1) counters_.add(Counter::MulticastCopies, peers - 1);
}

void Worker::send_fragments(Link& link, std::span<std::byte> frame,
                            const std::optional<csum::ChecksumPlace>& checksum) noexcept {
  const auto header = load<FrameHeader>(frame);
  auto due = checksum;
  // A partial checksum does not cross: it is of the whole.
  if ((header.flags & kChecksumComplete) == 0 &&
      (header.offload.flags & tun::VIRTIO_NET_HDR_F_NEEDS_CSUM) != 0) {
    due = {header.offload.csum_start.value(), header.offload.csum_offset.value()};
  }
  if (!complete(frame, due)) return counters_.add(Counter::TxDropChecksum);
  const std::span<std::byte> packet = std::span(segment_).first(header.length.value());
  std::ranges::copy(frame.subspan(kFrameHeader, packet.size()), packet.begin());
  Fragments fragments(packet, link.mtu);
  const std::size_t count = fragments.left();
  counters_.add(Counter::TxFragments, count - 1);
  const std::size_t most = frame_size(link.mtu.value());
  for (std::size_t left = count; left > 0; --left) {
    if (!reading_.ensure(most)) return counters_.add(Counter::TxDropQueueFull, left);
    const std::span<std::byte> own = reading_.next(most);
    const std::size_t length = fragments.next(own.subspan(kFrameHeader));
    store(own, kTunOffset, tun::VirtioNetHeader{});
    finish_packet_frame(own, length);
    send(link, own.first(frame_size(length)), std::nullopt);
  }
}

void Worker::send(Link& link, std::span<std::byte> frame,
                  const std::optional<csum::ChecksumPlace>& checksum) noexcept {
  const auto header = load<FrameHeader>(frame);
  const std::span<const std::byte> packet = frame.subspan(kFrameHeader, header.length.value());
  if ((needed_capabilities(header.offload) & ~link.capabilities) != 0) {
    return counters_.add(Counter::TxDropOffload);
  }
  const std::size_t largest = largest_segment(header.offload, packet);
  if (largest > link.mtu.value()) {
    answer_too_big(link, packet, largest);
    return counters_.add(Counter::TxDropTooBig);
  }
  const bool copies = packet.size() <= options_.copy_break && copying_.ensure(frame.size());
  SlabCursor& from = copies ? copying_ : reading_;
  const std::span<std::byte> whole = copies ? copying_.next(frame.size()) : frame;
  if (!link.waiting.empty() || !may_pin(link, from.slab()) ||
      !link.sends.takes(from.slab(), whole, link.may_open())) {
    switch (link.waiting.push(frame, checksum, summing())) {
      case FrameQueue::Push::Queued:
        return;
      case FrameQueue::Push::Full:
        return counters_.add(Counter::TxDropQueueFull);
      case FrameQueue::Push::BadChecksum:
        return counters_.add(Counter::TxDropChecksum);
    }
  }
  if (!(copies ? copy_frame(whole, frame, checksum, summing()) : complete(whole, checksum))) {
    return counters_.add(Counter::TxDropChecksum);
  }
  const auto result = link.sends.append(from.slab(), whole, link.may_open());
  if (result == SendQueue::Append::Failed) return counters_.add(Counter::TxDropPostFailed);
  if (result == SendQueue::Append::Opened) --link.send_credits;
  from.advance_past(whole);
}

std::optional<csum::ChecksumPlace> Worker::checksum_to_complete(
    const tun::VirtioNetHeader& header) const noexcept {
  if (options_.checksum == Checksum::Auto) return std::nullopt;
  if ((header.flags & tun::VIRTIO_NET_HDR_F_NEEDS_CSUM) == 0) return std::nullopt;
  return csum::ChecksumPlace{header.csum_start.value(), header.csum_offset.value()};
}

void Worker::drain_waiting(Link& link) noexcept {
  while (!link.waiting.empty()) {
    // What is in flight unsignalled comes back with a message after it, and only so.
    if (!may_pin(link, link.waiting.slab()) && link.sends.unsignalled() == 0) return;
    const auto result = link.sends.append(link.waiting.slab(), link.waiting.front(),
                                          link.active && link.may_open());
    if (result == SendQueue::Append::Refused || result == SendQueue::Append::Failed) return;
    if (result == SendQueue::Append::Opened) --link.send_credits;
    link.waiting.pop();
  }
}

void Worker::send_control(Link& link) noexcept {
  if (!copying_.ensure(kFrameHeader)) return;
  const std::span<std::byte> frame = copying_.next(kFrameHeader);
  // A slot must be free before credits are taken: what was taken must be sent.
  write_control_frame(frame, 0);
  if (!link.sends.append_control(copying_.slab(), frame)) return;
  set_credits(frame, link.grantor.take());
  copying_.advance_past(frame);
}

void Worker::flush(Link& link, TimePoint now) noexcept {
  const std::span<std::byte> place = link.sends.grant_place();
  if (!place.empty()) set_credits(place, link.grantor.take());
  const bool ok = link.sends.flush();
  if (link.sends.totals().doorbells != link.accounted.doorbells) link.last_sent = now;
  account(link);
  if (!ok) fail(link, "the queue pair refused a send");
}

void Worker::account(Link& link) noexcept {
  const SendQueue::Totals now = link.sends.totals();
  const SendQueue::Totals before = std::exchange(link.accounted, now);
  counters_.add(Counter::PeerTxPackets, now.packets - before.packets);
  counters_.add(Counter::PeerTxBytes, now.bytes - before.bytes);
  counters_.add(Counter::PeerTxMessages, now.messages - before.messages);
  counters_.add(Counter::PeerTxGrants, now.controls - before.controls);
  counters_.add(Counter::PeerTxDoorbells, now.doorbells - before.doorbells);
  counters_.add(Counter::TxDropPostFailed, now.lost_packets - before.lost_packets);
  peer_gauges_[link.peer].tx_packets.add(now.packets - before.packets);
  peer_gauges_[link.peer].tx_bytes.add(now.bytes - before.bytes);
}

}  // namespace ipoverbs::transport
