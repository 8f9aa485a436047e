// check() against the judge: what it calls Ok, a real TUN must take.
#include <array>
#include <cerrno>
#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tun/namespace.h"
#include "tests/tun/rig.h"
#include "tun/interface.h"

namespace ipoverbs::tun {
namespace {

class KernelHeaderTest : public NamespaceTest {
 protected:
  void SetUp() override {
    NamespaceTest::SetUp();
    if (IsSkipped()) return;
    Config config = test_config();
    config.queues = 1;
    t0_.emplace(Interface::create(config, *logger_));
  }
  void TearDown() override {
    t0_.reset();
    NamespaceTest::TearDown();
  }
  // The kernel's verdict on the record as a receiver writes it, with hdr_len set anew.
  int verdict(Record record) const {
    record.header.hdr_len = Le16(true_header_length(record.packet, record.header));
    return write_record(t0_->queues().front(), record);
  }
  [[nodiscard]] bool knows_uso() const { return t0_->offloads().write.uso; }

 private:
  std::shared_ptr<Logger> logger_ = make_null_logger();
  std::optional<Interface> t0_;
};

TEST_F(KernelHeaderTest, TakesGoodRecords) {
  EXPECT_EQ(verdict(tcp4_super_packet()), 0);
  EXPECT_EQ(verdict(tcp6_super_packet()), 0);
  EXPECT_EQ(verdict(udp4_partial()), 0);
  EXPECT_EQ(verdict(udp4_super_packet()), knows_uso() ? 0 : EINVAL);
}

TEST_F(KernelHeaderTest, RefusesWhatCheckRefuses) {
  Record record = tcp4_super_packet();
  record.header.gso_size = Le16(0);
  EXPECT_EQ(verdict(record), EINVAL);
  record = tcp4_super_packet();
  record.header.csum_start = Le16(65535);
  EXPECT_EQ(verdict(record), EINVAL);
}

// A value that is often one of those at which something changes.
std::uint16_t pick16(std::mt19937& random, std::size_t packet) {
  const std::array<std::uint16_t, 18> edges{0,  1,  2,  6,    16,   18,   19,    20,    28,
                                            40, 48, 68, 1000, 1460, 9000, 65533, 65534, 65535};
  switch (random() % 3) {
    case 0:
      return edges[random() % edges.size()];
    case 1:
      return static_cast<std::uint16_t>(packet + random() % 5 - 2);
    default:
      return static_cast<std::uint16_t>(random());
  }
}

// Spoils up to three fields of a good record.
Record mutate(Record record, std::mt19937& random) {
  const std::array<std::uint8_t, 9> types{0, 1, 2, 3, 4, 5, 0x80, 0x81, 0x84};
  for (unsigned i = random() % 4; i > 0; --i) {
    const std::size_t size = record.packet.size();
    switch (random() % 8) {
      case 0:
        record.header.flags = static_cast<std::uint8_t>(random() % 4);
        break;
      case 1:
        record.header.gso_type = types[random() % types.size()];
        break;
      case 2:
        record.header.gso_size = Le16(pick16(random, size));
        break;
      case 3:
        record.header.csum_start = Le16(pick16(random, size));
        break;
      case 4:
        record.header.csum_offset = Le16(pick16(random, size));
        break;
      case 5:
        record.packet.resize(std::max<std::size_t>(random() % (size + 1), 1));
        break;
      default:
        record.packet[random() % std::min<std::size_t>(size, 80)] =
            static_cast<std::byte>(random());
        break;
    }
  }
  return record;
}

TEST_F(KernelHeaderTest, TakesWhateverCheckCallsOk) {
  constexpr unsigned kSeed = 20260101;
  constexpr int kRecords = 60000;
  std::mt19937 random(kSeed);
  const std::array<Record, 4> good{tcp4_super_packet(), tcp6_super_packet(), udp4_super_packet(),
                                   udp4_partial()};
  std::map<HeaderCheck, int> seen;
  for (int i = 0; i < kRecords; ++i) {
    const Record record = mutate(good[random() % good.size()], random);
    const HeaderCheck judged = check(record.header, record.packet);
    ++seen[judged];
    if (judged != HeaderCheck::Ok) continue;
    if (record.header.gso_type == VIRTIO_NET_HDR_GSO_UDP_L4 && !knows_uso()) continue;
    ASSERT_EQ(verdict(record), 0) << "seed " << kSeed << ", record " << i;
  }
  // The mutations reach both sides of the judgement, each many times.
  EXPECT_GT(seen[HeaderCheck::Ok], kRecords / 10);
  EXPECT_GT(kRecords - seen[HeaderCheck::Ok], kRecords / 10);
}

}  // namespace
}  // namespace ipoverbs::tun
