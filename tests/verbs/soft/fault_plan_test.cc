#include "verbs/soft/fault_plan.h"

#include <algorithm>
#include <bit>

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/verbs/soft/rc_script.h"
#include "verbs/soft/icrc.h"

namespace ipoverbs::verbs::soft {
namespace {

using script::kStart;
using script::request;
using namespace std::chrono_literals;

constexpr unsigned kDatagrams = 10000;

// Keeps what is sent, and gives what it is told to have received.
class RecordingWire : public Wire {
 public:
  void send(const Burst& /*burst*/, TimePoint /*now*/) noexcept override { FAIL(); }
  void send_one(const Path& path, std::span<const std::byte> datagram,
                TimePoint /*now*/) noexcept override {
    sent.emplace_back(datagram.begin(), datagram.end());
    classes.push_back(path.traffic_class());
    intact += icrc_matches(path.flow(), datagram, 0) == std::optional<std::uint16_t>(0);
  }
  [[nodiscard]] std::span<const Received> receive(TimePoint /*now*/) noexcept override {
    given_ = std::exchange(incoming, {});
    return given_;
  }
  [[nodiscard]] std::uint32_t psn(std::size_t i) const { return parse(sent[i])->bth.psn().value(); }

  std::vector<std::vector<std::byte>> sent;
  std::vector<std::uint8_t> classes;
  std::vector<Received> incoming;
  unsigned intact = 0;

 private:
  std::vector<Received> given_;
};

class FaultTest : public testing::Test {
 protected:
  // Sends `count` packets, PSNs counting from 0, through a wire with that plan.
  void pass(std::string_view plan, unsigned count = kDatagrams, Opcode opcode = Opcode::SendOnly) {
    wire_.sent.clear();
    wire_.classes.clear();
    wire_.intact = 0;
    faulty_.emplace(wire_, parse_fault_plan(plan));
    for (std::uint32_t psn = 0; psn < count; ++psn) {
      burst_.add(path_, request(opcode, psn, {}), {}, 0, 0);
      if (burst_.has_room() && psn + 1 < count) continue;
      faulty_->send(burst_, now_);
      burst_.clear();
    }
  }
  [[nodiscard]] const FaultCounters& out() const { return faulty_->counters(Direction::Out); }

  RecordingWire wire_;
  std::optional<FaultyWire> faulty_;
  Path path_ = script::path();
  Burst burst_;
  TimePoint now_ = kStart;
};

TEST_F(FaultTest, WithoutRulesEverythingPassesInOrder) {
  pass("seed=1");
  ASSERT_EQ(wire_.sent.size(), kDatagrams);
  EXPECT_EQ(wire_.intact, kDatagrams);
  for (std::uint32_t i = 0; i < kDatagrams; ++i) ASSERT_EQ(wire_.psn(i), i);
}

TEST_F(FaultTest, Drops) {
  pass("out:drop=0.1");
  EXPECT_NEAR(static_cast<double>(out().dropped.value()), kDatagrams * 0.1, 100);
  EXPECT_EQ(wire_.sent.size(), kDatagrams - out().dropped.value());
  EXPECT_EQ(wire_.intact, wire_.sent.size());
  pass("out:drop=1");
  EXPECT_TRUE(wire_.sent.empty());
}

TEST_F(FaultTest, FlipsExactlyOneBitThatTheIcrcSees) {
  pass("out:corrupt=1");
  ASSERT_EQ(wire_.sent.size(), kDatagrams);
  EXPECT_EQ(wire_.intact, 0U);
  std::vector<std::byte> clean(16);
  std::array<unsigned, 128> hits{};
  for (std::uint32_t psn = 0; psn < kDatagrams; ++psn) {
    emit(clean, request(Opcode::SendOnly, psn, {}), path_.flow(), 0);
    unsigned flipped = 0;
    for (std::size_t i = 0; i < clean.size(); ++i) {
      const auto difference = std::to_integer<std::uint8_t>(clean[i] ^ wire_.sent[psn][i]);
      flipped += static_cast<unsigned>(std::popcount(difference));
      if (difference != 0) {
        ++hits.at(i * 8 + static_cast<unsigned>(std::countr_zero(difference)));
      }
    }
    ASSERT_EQ(flipped, 1U);
  }
  for (unsigned bit = 0; bit < hits.size(); ++bit) {
    EXPECT_EQ(hits.at(bit) > 0, bit / 8 != 4) << bit;
  }
}

TEST_F(FaultTest, Duplicates) {
  pass("out:duplicate=0.2");
  EXPECT_NEAR(static_cast<double>(out().duplicated.value()), kDatagrams * 0.2, 150);
  ASSERT_EQ(wire_.sent.size(), kDatagrams + out().duplicated.value());
  std::uint64_t twice = 0;
  for (std::size_t i = 1; i < wire_.sent.size(); ++i) twice += wire_.sent[i] == wire_.sent[i - 1];
  EXPECT_EQ(twice, out().duplicated.value());
}

TEST_F(FaultTest, Reorders) {
  pass("out:reorder=0.05");
  now_ += FaultyWire::kReorderLimit;
  static_cast<void>(faulty_->receive(now_));
  ASSERT_EQ(wire_.sent.size(), kDatagrams);
  std::uint64_t backward = 0;
  for (std::size_t i = 1; i < wire_.sent.size(); ++i) {
    backward += wire_.psn(i) < wire_.psn(i - 1);
    EXPECT_LE(std::abs(static_cast<std::int64_t>(wire_.psn(i)) - static_cast<std::int64_t>(i)), 8);
  }
  EXPECT_GT(out().reordered.value(), 400U);
  EXPECT_GT(backward, out().reordered.value() * 8 / 10);
}

TEST_F(FaultTest, ReorderedWithNothingBehindItComesInTheEnd) {
  pass("out:reorder=1", 1);
  EXPECT_TRUE(wire_.sent.empty());
  EXPECT_EQ(faulty_->deadline(), now_ + FaultyWire::kReorderLimit);
  static_cast<void>(faulty_->receive(now_ + FaultyWire::kReorderLimit - 1ns));
  EXPECT_TRUE(wire_.sent.empty());
  static_cast<void>(faulty_->receive(now_ + FaultyWire::kReorderLimit));
  EXPECT_EQ(wire_.sent.size(), 1U);
  EXPECT_FALSE(faulty_->deadline());
}

TEST_F(FaultTest, Delays) {
  pass("out:delay=1@5ms", 3);
  EXPECT_TRUE(wire_.sent.empty());
  EXPECT_EQ(faulty_->deadline(), now_ + 5ms);
  static_cast<void>(faulty_->receive(now_ + 5ms));
  EXPECT_EQ(wire_.sent.size(), 3U);
  EXPECT_EQ(out().delayed.value(), 3U);
}

TEST_F(FaultTest, MarksWhatIsCapableOfIt) {
  path_.set_traffic_class(0xb8 | 0x02);
  pass("out:mark=0.1");
  EXPECT_NEAR(static_cast<double>(out().marked.value()), kDatagrams * 0.1, 100);
  ASSERT_EQ(wire_.sent.size(), kDatagrams);
  EXPECT_EQ(wire_.intact, kDatagrams);
  EXPECT_EQ(std::ranges::count(wire_.classes, 0xb8 | 0x03), out().marked.value());
  EXPECT_EQ(std::ranges::count(wire_.classes, 0xb8 | 0x02), kDatagrams - out().marked.value());
  path_.set_traffic_class(0xb8);
  pass("out:mark=1", 10);
  EXPECT_EQ(out().marked.value(), 0U);
  EXPECT_EQ(std::ranges::count(wire_.classes, 0xb8), 10);
}

TEST_F(FaultTest, MarksWhatComesIn) {
  std::vector<std::byte> one(16);
  emit(one, request(Opcode::SendOnly, 1, {}), path_.flow(), 0);
  const Endpoint source{*IpAddress::parse("192.0.2.2"), 0xc002, 0};
  FaultyWire faulty(wire_, parse_fault_plan("in:mark=1"));
  wire_.incoming = {{one, 0, source, 0x02}, {one, 0, source, 0x01}, {one, 0, source, 0x00}};
  std::vector<int> classes;
  for (const Received& received : faulty.receive(now_)) classes.push_back(received.traffic_class);
  EXPECT_EQ(classes, (std::vector{3, 3, 0}));
  EXPECT_EQ(faulty.counters(Direction::In).marked.value(), 2U);
}

TEST_F(FaultTest, OpcodesChooseWhatIsMeant) {
  pass("out/answer:drop=1", 100);
  EXPECT_EQ(wire_.sent.size(), 100U);
  pass("out/answer:drop=1", 100, Opcode::Acknowledge);
  EXPECT_EQ(wire_.sent.size(), 0U);
  pass("out/0x04:drop=1", 100);
  EXPECT_EQ(wire_.sent.size(), 0U);
  pass("out/0x04:drop=1", 100, Opcode::SendOnlyImm);
  EXPECT_EQ(wire_.sent.size(), 100U);
  pass("out/send:drop=0 out:drop=1", 100);
  EXPECT_EQ(wire_.sent.size(), 100U);
  pass("in:drop=1", 100);
  EXPECT_EQ(wire_.sent.size(), 100U);
}

TEST_F(FaultTest, IncomingIsTreatedDatagramByDatagram) {
  std::vector<std::byte> two(32);
  for (std::uint32_t psn = 0; psn < 2; ++psn) {
    emit(std::span(two).subspan(16UL * psn), request(Opcode::SendOnly, psn, {}), path_.flow(), 0);
  }
  const Endpoint source{*IpAddress::parse("192.0.2.2"), 0xc002, 0};
  FaultyWire faulty(wire_, parse_fault_plan("in:duplicate=1"));
  wire_.incoming = {{two, 16, source, 7}};
  const auto received = faulty.receive(now_);
  ASSERT_EQ(received.size(), 4U);
  for (std::size_t i = 0; i < received.size(); ++i) {
    EXPECT_EQ(parse(received[i].bytes)->bth.psn().value(), i / 2);
    EXPECT_EQ(received[i].source, source);
    EXPECT_EQ(received[i].traffic_class, 7);
  }
}

TEST_F(FaultTest, SameSeedSameFaults) {
  const std::string_view plan = "seed=5 out:drop=0.1,corrupt=0.1,duplicate=0.1,reorder=0.1";
  pass(plan, 1000);
  const auto first = wire_.sent;
  pass(plan, 1000);
  EXPECT_EQ(wire_.sent, first);
  pass("seed=6 out:drop=0.1,corrupt=0.1,duplicate=0.1,reorder=0.1", 1000);
  EXPECT_NE(wire_.sent, first);
}

TEST(FaultPlanText, IsParsed) {
  const FaultPlan plan = parse_fault_plan("seed=9  in/cm:drop=1,reorder=0.5 out:delay=0.25@300us");
  EXPECT_EQ(plan.seed, 9U);
  ASSERT_EQ(plan.rules.size(), 2U);
  EXPECT_EQ(plan.rules[0].direction, Direction::In);
  EXPECT_EQ(plan.rules[0].opcodes.count(), 2U);
  EXPECT_TRUE(plan.rules[0].opcodes.test(0x64));
  EXPECT_EQ(plan.rules[0].reorder, 0.5);
  EXPECT_EQ(plan.rules[1].delay_by, 300us);
  EXPECT_TRUE(parse_fault_plan("").rules.empty());
  EXPECT_TRUE(plan.segmentation && plan.coalescing);
  EXPECT_FALSE(parse_fault_plan("no-gso").segmentation);
  EXPECT_FALSE(parse_fault_plan("no-gro").coalescing);
  EXPECT_EQ(parse_fault_plan("out:mark=0.5").rules.at(0).mark, 0.5);
}

TEST(FaultPlanText, RefusesNonsense) {
  for (const char* bad :
       {"up:drop=1",        "out",           "out:",         "out:drop",      "out:drop=x",
        "out:drop=1.5",     "out:drop=-1",   "out:drop=nan", "out:melt=1",    "out/foo:drop=1",
        "out/0x100:drop=1", "out/0x:drop=1", "out:delay=1",  "out:delay=1@5", "out:delay=1@5s",
        "out:drop=1@5ms",   "seed=x",        "seed=",        "no-gs",         "out:mark=1@1ms"}) {
    EXPECT_THROW(static_cast<void>(parse_fault_plan(bad)), UsageError) << bad;
  }
}

}  // namespace
}  // namespace ipoverbs::verbs::soft
