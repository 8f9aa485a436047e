#include <array>

#include "transport/packet.h"
#include "transport/worker.h"

namespace ipoverbs::transport {

namespace {

// A receive's work request id: the top bit, then the number of its buffer.
constexpr std::uint64_t kReceiveBit = std::uint64_t{1} << 63;

constexpr std::uint64_t receive_id(std::uint32_t buffer) { return kReceiveBit | buffer; }
constexpr bool is_receive(std::uint64_t wr_id) { return (wr_id & kReceiveBit) != 0; }
constexpr std::uint32_t buffer_of(std::uint64_t wr_id) { return static_cast<std::uint32_t>(wr_id); }

}  // namespace

int Worker::receive(TimePoint now) noexcept {
  std::array<ibv_wc, kPollBatch> batch;
  const int n = ibv_poll_cq(completions_->raw(), kPollBatch, batch.data());
  for (int i = 0; i < n; ++i) on_completion(batch[static_cast<std::size_t>(i)], now);
  post_receives();
  return std::max(n, 0);
}

void Worker::on_completion(const ibv_wc& completion, TimePoint now) noexcept {
  auto found = by_queue_pair_.find(completion.qp_num);
  if (found == by_queue_pair_.end() && has_commands_.load(std::memory_order_acquire)) {
    // The far end may send before this worker has seen the command that attaches the session.
    run_commands();
    found = by_queue_pair_.find(completion.qp_num);
  }
  Link* link = found == by_queue_pair_.end() ? nullptr : found->second;
  if (link == nullptr) counters_.add(Counter::RxUnknownQueuePair);
  if (is_receive(completion.wr_id)) {
    const std::uint32_t buffer = buffer_of(completion.wr_id);
    if (link != nullptr && completion.status == IBV_WC_SUCCESS) {
      on_message(*link, buffers_.bytes(buffer).first(completion.byte_len), now);
    }
    const bool flushed = completion.status == IBV_WC_WR_FLUSH_ERR;
    reposts_.append({flushed && !shared_receives_ ? nullptr : link, buffer});
    if (shared_receives_) --posted_;
  } else if (completion.status == IBV_WC_SUCCESS) {
    if (link != nullptr && link->id == SendQueue::link_of(completion.wr_id)) {
      link->sends.complete(SendQueue::position_of(completion.wr_id));
    }
  }
  if (completion.status != IBV_WC_SUCCESS) on_error(completion);
}

void Worker::on_error(const ibv_wc& completion) noexcept {
  if (completion.status == IBV_WC_WR_FLUSH_ERR) return;
  counters_.add(Counter::RxError);
  const auto found = by_queue_pair_.find(completion.qp_num);
  if (found == by_queue_pair_.end()) return;
  fail(*found->second, ibv_wc_status_str(completion.status));
}

void Worker::on_message(Link& link, std::span<std::byte> message, TimePoint now) noexcept {
  link.last_received = now;
  link.received_any = true;
  link.waits_for_first = false;
  FrameReader reader(message);
  Frame frame;
  bool has_packets = false;
  FrameReader::Result result = reader.next(frame);
  for (; result == FrameReader::Result::Frame; result = reader.next(frame)) {
    link.send_credits += frame.credits;
    if (frame.type == FrameType::Control) {
      if ((frame.flags & kCapabilities) != 0) on_capabilities(link, frame);
      continue;
    }
    has_packets = true;
    deliver(link, frame);
  }
  if (result == FrameReader::Result::Malformed) counters_.add(Counter::RxDropMalformedFrame);
  // What is no frame at all was not sent as Control either.
  const bool control = !has_packets && result == FrameReader::Result::End && !message.empty();
  counters_.add(control ? Counter::PeerRxGrants : Counter::PeerRxMessages);
  if (control) {
    if (!link.control_allowance.on_control(link.sends.totals().messages)) {
      fail(link, "the peer floods Control messages");
    }
  } else if (!link.grantor.on_message()) {
    fail(link, "the peer sent more than it was granted");
  }
}

void Worker::on_capabilities(Link& link, const Frame& frame) noexcept {
  const std::uint32_t left = link.not_withdrawn & frame.capabilities();
  if (left == link.not_withdrawn) return;
  link.not_withdrawn = left;
  // Told again when the link is activated, if it is not yet.
  if (link.active) report({Report::Kind::PeerWithdrew, link.id, {}, left});
}

void Worker::deliver(Link& link, const Frame& frame) noexcept {
  const std::span<std::byte> packet = frame.packet();
  counters_.add(Counter::PeerRxPackets);
  counters_.add(Counter::PeerRxBytes, packet.size());
  const auto addresses = read_addresses(packet);
  if (!addresses) return counters_.add(Counter::RxDropMalformedPacket);
  const IpAddress& source = addresses->source;
  if (source.is_multicast() || source.is_unspecified() || source.is_loopback() ||
      routes_.lookup(source) != Target::peer(link.peer)) {
    return counters_.add(Counter::RxDropBadSource);
  }
  if (options_.multicast == Multicast::Off && addresses->is_for_all()) {
    return counters_.add(Counter::RxDropMulticast);
  }
  auto header = load<tun::VirtioNetHeader>(frame.tun_bytes);
  if (tun::check(header, packet) != tun::HeaderCheck::Ok) {
    return counters_.add(Counter::RxDropOffload);
  }
  if ((frame.flags & kChecksumComplete) != 0 && !accept_checksum(packet, header)) {
    return counters_.add(Counter::RxDropChecksum);
  }
  header.hdr_len = Le16(tun::true_header_length(packet, header));
  store(frame.tun_bytes, 0, header);
  write_tun(frame.tun_bytes, link);
}

bool Worker::accept_checksum(std::span<std::byte> packet, tun::VirtioNetHeader& header) noexcept {
  const csum::Layout layout = csum::locate(packet);
  if (!csum::is_good(csum::verify(packet, layout))) return false;
  if ((header.flags & tun::VIRTIO_NET_HDR_F_NEEDS_CSUM) == 0) return true;
  // Partial again, so that the kernel here need not sum what has been verified.
  if (const auto place = csum::make_partial(packet, layout); place) {
    header.csum_start = Le16(place->start);
    header.csum_offset = Le16(place->offset);
    return true;
  }
  // Complete it stays; a super-packet cannot be written so (virtio 1.2, section 5.1.6.2).
  header.flags = 0;
  return header.gso_type == tun::VIRTIO_NET_HDR_GSO_NONE;
}

void Worker::post_receives() noexcept {
  std::size_t i = 0;
  while (i < reposts_.size()) {
    Link* const owner = reposts_[i].link;
    std::size_t n = 0;
    // One chain for the shared queue, or one for each run of the same session.
    for (; i < reposts_.size() && (shared_receives_ || reposts_[i].link == owner); ++i) {
      const std::uint32_t buffer = reposts_[i].buffer;
      const bool post = shared_receives_ ? posted_ + n < credits_.receives()
                                         : owner != nullptr && !owner->detached;
      if (!post) {
        spare_buffers_.append(buffer);
        continue;
      }
      const std::span<std::byte> bytes = buffers_.bytes(buffer);
      receive_elements_[n] = {std::bit_cast<std::uintptr_t>(bytes.data()),
                              static_cast<std::uint32_t>(bytes.size()),
                              buffers_.key(buffer).value()};
      receive_requests_[n] = {receive_id(buffer), nullptr, &receive_elements_[n], 1};
      if (n > 0) receive_requests_[n - 1].next = &receive_requests_[n];
      ++n;
    }
    if (n == 0) continue;
    ibv_recv_wr* refused = nullptr;
    const int error =
        shared_receives_
            ? ibv_post_srq_recv(shared_receives_->raw(), receive_requests_.data(), &refused)
            : ibv_post_recv(owner->queue_pair, receive_requests_.data(), &refused);
    auto posted = n;
    if (error != 0) posted = static_cast<std::size_t>(refused - receive_requests_.data());
    for (std::size_t k = posted; k < n; ++k) {
      spare_buffers_.append(buffer_of(receive_requests_[k].wr_id));
    }
    if (shared_receives_) posted_ += static_cast<std::uint32_t>(posted);
  }
  reposts_.clear();
}

}  // namespace ipoverbs::transport
