#include <algorithm>
#include <bit>

#include "transport/send_queue.h"

namespace ipoverbs::transport {

bool SendQueue::has_room() const noexcept {
  return !failed_ && head_ - tail_ + kControlSlots < limits_.depth &&
         bytes_in_flight_ < limits_.window_bytes;
}

bool SendQueue::joins(const Slab& slab, std::span<const std::byte> frame) const noexcept {
  if (!open_) return false;
  const Message& message = ring_[(head_ - 1) & (ring_.size() - 1)];
  if (message.bytes + frame.size() > limits_.max_message) return false;
  if (message.packets >= limits_.packets_per_message) return false;
  const Staged& staged = chain_[staged_ - 1];
  const ibv_sge& last = staged.gather[static_cast<std::size_t>(staged.gather_count) - 1];
  const bool end_to_end = last.lkey == slab.key.value() &&
                          last.addr + last.length == std::bit_cast<std::uintptr_t>(frame.data()) &&
                          message.slabs[message.slab_count - 1] == &slab;
  return end_to_end || static_cast<std::uint32_t>(staged.gather_count) < limits_.max_gather;
}

void SendQueue::add_element(Slab& slab, std::span<std::byte> frame) noexcept {
  Message& message = place(head_ - 1);
  Staged& staged = chain_[staged_ - 1];
  staged.gather[static_cast<std::size_t>(staged.gather_count++)] = {
      std::bit_cast<std::uintptr_t>(frame.data()), static_cast<std::uint32_t>(frame.size()),
      slab.key.value()};
  if (message.slab_count > 0 && message.slabs[message.slab_count - 1] == &slab) return;
  message.slabs[message.slab_count++] = &slab;
  pin(slab);
}

void SendQueue::pin(Slab& slab) noexcept {
  SlabPool::add_reference(slab);
  if (pins_[slab.index]++ == 0) ++pinned_slabs_;
}

void SendQueue::unpin(Slab& slab) noexcept {
  if (--pins_[slab.index] == 0) --pinned_slabs_;
  slabs_.release(slab);
}

void SendQueue::begin_message(Slab& slab, std::span<std::byte> frame, bool control) noexcept {
  place(head_) = {};
  ++head_;
  chain_[staged_].gather_count = 0;
  chain_[staged_].first_frame = frame.data();
  ++staged_;
  add_element(slab, frame);
  open_ = !control;
}

void SendQueue::extend(Slab& slab, std::span<std::byte> frame) noexcept {
  Staged& staged = chain_[staged_ - 1];
  ibv_sge& last = staged.gather[static_cast<std::size_t>(staged.gather_count) - 1];
  const Message& message = place(head_ - 1);
  if (message.slabs[message.slab_count - 1] == &slab &&
      last.addr + last.length == std::bit_cast<std::uintptr_t>(frame.data())) {
    last.length += static_cast<std::uint32_t>(frame.size());
  } else {
    add_element(slab, frame);
  }
}

SendQueue::Append SendQueue::append(Slab& slab, std::span<std::byte> frame,
                                    bool may_open) noexcept {
  Append result = Append::Joined;
  if (joins(slab, frame)) {
    extend(slab, frame);
  } else {
    if (!may_open || !has_room()) return failed_ ? Append::Failed : Append::Refused;
    if (staged_ == limits_.messages_per_doorbell && !flush()) return Append::Failed;
    begin_message(slab, frame, false);
    result = Append::Opened;
  }
  Message& message = place(head_ - 1);
  const auto size = static_cast<std::uint32_t>(frame.size());
  message.bytes += size;
  bytes_in_flight_ += size;
  message.packets += 1;
  message.packet_bytes += load<FrameHeader>(frame).length.value();
  return result;
}

bool SendQueue::append_control(Slab& slab, std::span<std::byte> frame) noexcept {
  if (failed_ || head_ - tail_ >= limits_.depth) return false;
  if (staged_ == limits_.messages_per_doorbell && !flush()) return false;
  begin_message(slab, frame, true);
  Message& message = place(head_ - 1);
  message.bytes = static_cast<std::uint32_t>(frame.size());
  bytes_in_flight_ += message.bytes;
  return true;
}

std::span<std::byte> SendQueue::grant_place() const noexcept {
  if (staged_ == 0 || ring_[(head_ - staged_) & (ring_.size() - 1)].packets == 0) return {};
  return {chain_[0].first_frame, kFrameHeader};
}

void SendQueue::prepare(std::uint32_t index) noexcept {
  ibv_send_wr& request = requests_[index];
  const bool last = index + 1 == staged_;
  request.wr_id = work_request_id(id_, head_ - staged_ + index);
  request.next = last ? nullptr : &requests_[index + 1];
  request.num_sge = chain_[index].gather_count;
  request.send_flags = IBV_SEND_SOLICITED;
  const Message& message = place(head_ - staged_ + index);
  ++unsignalled_;
  bytes_unsignalled_ += message.bytes;
  if (wants_signal(message, last)) {
    request.send_flags |= IBV_SEND_SIGNALED;
    unsignalled_ = bytes_unsignalled_ = 0;
  }
}

bool SendQueue::wants_signal(const Message& message, bool last) const noexcept {
  if (unsignalled_ >= limits_.signal_interval || message.packets == 0) return true;
  return last && (bytes_unsignalled_ >= kUnsignalledBytes || slabs_.is_short() || at_share());
}

bool SendQueue::flush() noexcept {
  if (staged_ == 0) return !failed_;
  open_ = false;
  for (std::uint32_t i = 0; i < staged_; ++i) prepare(i);
  ibv_send_wr* refused = nullptr;
  const int error = ibv_post_send(queue_pair_, requests_.data(), &refused);
  const std::uint32_t posted =
      error == 0 ? staged_ : static_cast<std::uint32_t>(refused - requests_.data());
  ++totals_.doorbells;
  count_posted(posted);
  if (error != 0) drop_refused(posted);
  staged_ = 0;
  return error == 0;
}

void SendQueue::count_posted(std::uint32_t posted) noexcept {
  const Totals before = totals_;
  for (std::uint32_t i = 0; i < posted; ++i) {
    const Message& message = place(head_ - staged_ + i);
    (message.packets == 0 ? totals_.controls : totals_.messages) += 1;
    totals_.packets += message.packets;
    totals_.bytes += message.packet_bytes;
  }
  sizes_.packets.add(totals_.packets - before.packets);
  sizes_.bytes.add(totals_.bytes - before.bytes);
}

void SendQueue::drop_refused(std::uint32_t posted) noexcept {
  failed_ = true;
  for (std::uint32_t i = posted; i < staged_; ++i) {
    Message& message = place(head_ - staged_ + i);
    totals_.lost_packets += message.packets;
    give_back(message);
  }
  head_ -= staged_ - posted;
}

void SendQueue::complete(std::uint32_t position) noexcept {
  // A position that is not in flight would be a completion of another life: ignore it.
  if (position - tail_ >= head_ - staged_ - tail_) return;
  while (tail_ != position + 1) give_back(place(tail_++));
}

void SendQueue::give_back(Message& message) noexcept {
  for (std::uint32_t i = 0; i < message.slab_count; ++i) unpin(*message.slabs[i]);
  bytes_in_flight_ -= message.bytes;
  message.slab_count = 0;
  message.bytes = 0;
}

}  // namespace ipoverbs::transport
