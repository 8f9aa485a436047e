#include "transport/frame_queue.h"

namespace ipoverbs::transport {

FrameQueue::Push FrameQueue::push(std::span<const std::byte> frame,
                                  const std::optional<csum::ChecksumPlace>& checksum,
                                  Summing summing) noexcept {
  if (slab_ == nullptr) {
    if (slabs_.free_count() < 2) return Push::Full;
    slab_ = slabs_.take();
    begin_ = end_ = 0;
  }
  if (end_ + frame.size() > slab_->bytes.size()) return Push::Full;
  if (!copy_frame(slab_->bytes.subspan(end_, frame.size()), frame, checksum, summing)) {
    if (count_ == 0) clear();
    return Push::BadChecksum;
  }
  end_ += frame.size();
  ++count_;
  return Push::Queued;
}

std::span<std::byte> FrameQueue::front() const noexcept {
  const std::span<std::byte> rest = slab_->bytes.subspan(begin_, end_ - begin_);
  return rest.first(written_frame_size(rest));
}

void FrameQueue::pop() noexcept {
  begin_ += front().size();
  if (--count_ == 0) clear();
}

void FrameQueue::clear() noexcept {
  if (slab_ != nullptr) slabs_.release(*slab_);
  slab_ = nullptr;
  count_ = 0;
}

}  // namespace ipoverbs::transport
