#include "transport/send_queue.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/loopback_device.h"
#include "transport/frame.h"
#include "transport/frame_queue.h"

namespace ipoverbs::transport {
namespace {

constexpr LinkId kLink(7);

// A queue pair that writes down what is posted: "position:bytes", with "!" where it is signalled,
// a doorbell ending with "|".
class SendQueueTest : public testing::Test {
 protected:
  SendQueueTest() {
    context_.ops.post_send = [](ibv_qp* qp, ibv_send_wr* list, ibv_send_wr**) {
      std::string& posted = *static_cast<std::string*>(qp->qp_context);
      for (; list != nullptr; list = list->next) {
        std::uint64_t bytes = 0;
        for (int i = 0; i < list->num_sge; ++i) bytes += list->sg_list[i].length;
        const bool signalled = (list->send_flags & IBV_SEND_SIGNALED) != 0;
        posted += fmt::format("{}:{}{} ", SendQueue::position_of(list->wr_id), bytes,
                              signalled ? "!" : "");
      }
      posted.back() = '|';
      return 0;
    };
    queue_pair_.context = &context_;
    queue_pair_.qp_context = &posted_;
  }

  void make(const SendQueue::Limits& limits, std::uint32_t first = 0) {
    queue_.emplace(&queue_pair_, kLink, limits, slabs_, sizes_, first);
  }
  // A frame of `bytes`, in the slab at hand.
  SendQueue::Append append(std::size_t bytes) {
    EXPECT_TRUE(cursor_.ensure(kMaxFrame));
    const std::span<std::byte> frame = cursor_.next(bytes);
    finish_packet_frame(frame, bytes - kFrameHeader);
    const auto result = queue_->append(cursor_.slab(), frame, true);
    cursor_.advance_past(frame);
    return result;
  }
  void append_control() {
    ASSERT_TRUE(cursor_.ensure(kFrameHeader));
    const std::span<std::byte> frame = cursor_.next(kFrameHeader);
    write_control_frame(frame, 0);
    ASSERT_TRUE(queue_->append_control(cursor_.slab(), frame));
    cursor_.advance_past(frame);
  }
  // What flush() posts.
  std::string flush() {
    EXPECT_TRUE(queue_->flush());
    return std::exchange(posted_, {});
  }

  support::LoopbackNetwork network_;
  std::unique_ptr<verbs::Device> device_ = network_.open(*IpAddress::parse("192.0.2.1"), {});
  SlabPool slabs_{*device_, 8};
  SlabCursor cursor_{slabs_};
  std::string posted_;
  ibv_context context_{};
  ibv_qp queue_pair_{};
  DoorbellSizes sizes_;
  std::optional<SendQueue> queue_;
};

TEST_F(SendQueueTest, FramesThatLieEndToEndShareAMessage) {
  make({.packets_per_message = 3});
  EXPECT_EQ(append(64), SendQueue::Append::Opened);
  EXPECT_EQ(append(80), SendQueue::Append::Joined);
  EXPECT_EQ(append(64), SendQueue::Append::Joined);
  EXPECT_EQ(append(64), SendQueue::Append::Opened);
  EXPECT_EQ(flush(), "0:208 1:64|");
}

TEST_F(SendQueueTest, SmallMessagesAreSignalledNowAndThen) {
  make({.signal_interval = 4});
  std::string all;
  for (int i = 0; i < 8; ++i) {
    append(64);
    all += flush();
  }
  EXPECT_EQ(all, "0:64|1:64|2:64|3:64!|4:64|5:64|6:64|7:64!|");
}

TEST_F(SendQueueTest, ManyBytesAreSignalledWithTheLastOfTheirChain) {
  make({.max_message = 9000, .packets_per_message = 1});
  append(9000);
  append(9000);
  append(64);
  EXPECT_EQ(flush(), "0:9000 1:9000 2:64!|");
  append(64);
  EXPECT_EQ(flush(), "3:64|");
  EXPECT_EQ(queue_->unsignalled(), 1U);
  append(SendQueue::kUnsignalledBytes - 64);
  EXPECT_EQ(flush(), "4:16320!|");
  EXPECT_EQ(queue_->unsignalled(), 0U);
}

// 2^32 is no multiple of 96: places must not be taken by the remainder.
TEST_F(SendQueueTest, PositionsWrapInAnyDepth) {
  make({.depth = 96}, 0xffffffd0U);
  const std::uint32_t free = slabs_.free_count();
  for (int i = 0; i < 92; ++i) {
    EXPECT_EQ(append(64), SendQueue::Append::Opened);
    flush();
  }
  EXPECT_FALSE(queue_->has_room());
  queue_->complete(0xffffffd0U + 40);
  EXPECT_EQ(queue_->in_flight(), 51U);
  EXPECT_EQ(queue_->bytes_in_flight(), 51U * 64);
  queue_->complete(0xffffffd0U + 91);
  EXPECT_EQ(queue_->in_flight(), 0U);
  EXPECT_EQ(queue_->bytes_in_flight(), 0U);
  cursor_.reset();
  EXPECT_EQ(slabs_.free_count(), free);
}

TEST_F(SendQueueTest, AControlMessageBringsBackWhatWentBefore) {
  make({});
  append(64);
  EXPECT_EQ(flush(), "0:64|");
  append_control();
  EXPECT_EQ(flush(), "1:16!|");
  EXPECT_EQ(queue_->in_flight(), 2U);
  queue_->complete(1);
  EXPECT_EQ(queue_->in_flight(), 0U);
  EXPECT_EQ(queue_->bytes_in_flight(), 0U);
}

TEST_F(SendQueueTest, WhenSlabsAreShortEveryChainIsSignalled) {
  make({});
  append(64);
  EXPECT_EQ(flush(), "0:64|");
  std::vector<Slab*> taken;
  while (!slabs_.is_short()) taken.push_back(slabs_.take());
  append(64);
  EXPECT_EQ(flush(), "1:64!|");
  for (Slab* slab : taken) slabs_.release(*slab);
}

// One small message in each slab that others fill.
TEST_F(SendQueueTest, EachSlabIsPinnedOnceHoweverManyMessagesGatherFromIt) {
  make({.packets_per_message = 1});
  append(64);
  append(64);
  Slab& first = cursor_.slab();
  EXPECT_EQ(queue_->pinned_slabs(), 1U);
  cursor_.reset();
  append(64);
  EXPECT_NE(&cursor_.slab(), &first);
  EXPECT_EQ(queue_->pinned_slabs(), 2U);
  flush();
  queue_->complete(0);
  EXPECT_TRUE(queue_->pins(first));
  queue_->complete(1);
  EXPECT_FALSE(queue_->pins(first));
  EXPECT_TRUE(queue_->pins(cursor_.slab()));
  EXPECT_EQ(queue_->pinned_slabs(), 1U);
  queue_->abandon();
  EXPECT_EQ(queue_->pinned_slabs(), 0U);
}

TEST_F(SendQueueTest, AtItsShareOfSlabsItPinsHalfAsManyAsAreFreeAndSignals) {
  make({});
  std::string all;
  for (std::uint32_t pinned = 1; !queue_->at_share(); ++pinned) {
    append(64);
    cursor_.reset();
    all += flush();
    ASSERT_EQ(queue_->pinned_slabs(), pinned);
  }
  // Of 8 slabs 3 are pinned, 5 free; not short, which alone would signal.
  EXPECT_EQ(all, "0:64|1:64|2:64!|");
  EXPECT_FALSE(slabs_.is_short());
  queue_->complete(2);
  EXPECT_FALSE(queue_->at_share());
}

TEST_F(SendQueueTest, AWaitingQueueLeavesTheLastFreeSlabToTheReader) {
  std::vector<Slab*> taken;
  while (slabs_.free_count() > 1) taken.push_back(slabs_.take());
  std::vector<std::byte> frame(64);
  finish_packet_frame(frame, frame.size() - kFrameHeader);
  FrameQueue waiting(slabs_);
  EXPECT_EQ(waiting.push(frame, std::nullopt, Summing::Fused), FrameQueue::Push::Full);
  slabs_.release(*taken.back());
  taken.pop_back();
  EXPECT_EQ(waiting.push(frame, std::nullopt, Summing::Fused), FrameQueue::Push::Queued);
  for (Slab* slab : taken) slabs_.release(*slab);
}

TEST_F(SendQueueTest, TheWindowClosesOverBytesInFlight) {
  make({.packets_per_message = 1, .window_bytes = 1000});
  EXPECT_EQ(append(64), SendQueue::Append::Opened);
  EXPECT_EQ(append(2000), SendQueue::Append::Opened);
  EXPECT_EQ(append(64), SendQueue::Append::Refused);
  flush();
  EXPECT_FALSE(queue_->has_room());
  queue_->complete(1);
  EXPECT_TRUE(queue_->has_room());
}

TEST_F(SendQueueTest, ACompletionIsAwaitedFromASignalledMessageOnUntilItCame) {
  make({.signal_interval = 3});

  append(200);
  flush();
  append(200);
  flush();
  EXPECT_FALSE(queue_->awaits_completion());
  append(200);
  EXPECT_EQ(flush(), "2:200!|");
  append(200);
  flush();
  EXPECT_TRUE(queue_->awaits_completion());
  queue_->complete(2);

  EXPECT_FALSE(queue_->awaits_completion());
  EXPECT_EQ(queue_->in_flight(), 1U);
}

}  // namespace
}  // namespace ipoverbs::transport
