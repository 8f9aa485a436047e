#include <algorithm>

#include "transport/frame_queue.h"

namespace ipoverbs::transport {

FrameQueue::Push FrameQueue::push(std::span<const std::byte> frame,
                                  std::optional<csum::ChecksumPlace> checksum) noexcept {
  if (slab_ == nullptr) {
    slab_ = slabs_.take();
    if (slab_ == nullptr) return Push::Full;
    begin_ = end_ = 0;
  }
  if (end_ + frame.size() > slab_->bytes.size()) return Push::Full;
  const std::span<std::byte> to = slab_->bytes.subspan(end_, frame.size());
  if (checksum) {
    std::ranges::copy(frame.first(kFrameHeader), to.begin());
    if (csum::copy_and_complete(to.subspan(kFrameHeader), frame.subspan(kFrameHeader), *checksum) !=
        csum::Completion::done) {
      if (count_ == 0) clear();
      return Push::BadChecksum;
    }
  } else {
    std::ranges::copy(frame, to.begin());
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
