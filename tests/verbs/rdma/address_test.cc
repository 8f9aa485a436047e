#include "verbs/rdma/address.h"

#include <array>
#include <bit>
#include <cstring>

#include <gtest/gtest.h>

#include "core/byte_order.h"
#include "verbs/rdma/ib_path.h"

namespace ipoverbs::verbs {
namespace {

TEST(CmAddress, NamesAGidPortAndPartition) {
  const Endpoint gid{*IpAddress::parse("fe80::2:c903:1:2"), 4755, 0};
  const sockaddr_ib sib = to_sockaddr_ib(gid, 0x8001);
  EXPECT_EQ(sib.sib_family, AF_IB);
  EXPECT_EQ(std::bit_cast<Be16>(sib.sib_pkey).value(), 0x8001);
  // Port space TCP above the port, and all of it counts.
  EXPECT_EQ(std::bit_cast<Be64>(sib.sib_sid).value(), 0x0000000001061293U);
  EXPECT_EQ(std::bit_cast<Be64>(sib.sib_sid_mask).value(), 0xffffffffffffffffU);
  EXPECT_EQ(std::memcmp(&sib.sib_addr, gid.address.bytes().data(), 16), 0);
}

TEST(CmAddress, LeavesPortAndPartitionOpen) {
  const sockaddr_ib sib = to_sockaddr_ib({*IpAddress::parse("fe80::1"), 0, 0}, std::nullopt);
  EXPECT_EQ(std::bit_cast<Be16>(sib.sib_pkey).value(), 0xffff);
  EXPECT_EQ(std::bit_cast<Be64>(sib.sib_sid_mask).value(), 0xffffffffffff0000U);
}

TEST(CmAddress, ComesBack) {
  for (const auto& [text, by_gid] : {std::pair("192.0.2.1", false), std::pair("2001:db8::1", false),
                                     std::pair("fe80::1", true)}) {
    const Endpoint endpoint{*IpAddress::parse(text), 4755, 0};
    EXPECT_EQ(from_cm_address(to_cm_address(endpoint, by_gid, std::nullopt)), endpoint) << text;
  }
  EXPECT_EQ(from_cm_address(sockaddr_storage{}), std::nullopt);
}

// PathRecord, IBTA volume 1, 15.2.5.16.
TEST(IbPath, ChangesTheServiceLevelAlone) {
  ibv_sa_path_rec record{};
  record.dgid.raw[15] = 2;
  record.sgid.raw[15] = 1;
  record.dlid = std::bit_cast<std::uint16_t>(Be16(7));
  record.flow_label = std::bit_cast<std::uint32_t>(Be32(0xabcde));
  record.hop_limit = 64;
  record.traffic_class = 9;
  record.pkey = std::bit_cast<std::uint16_t>(Be16(0x8001));
  record.sl = 1;
  record.mtu = 5;
  record.rate = 3;
  record.packet_life_time = 18;
  const ibv_path_data data = path_with_service_level(record, 5);
  EXPECT_EQ(data.path.dgid.raw[15], 2);
  EXPECT_EQ(data.path.sgid.raw[15], 1);
  EXPECT_EQ(data.path.dlid, record.dlid);
  EXPECT_EQ(std::bit_cast<Be32>(data.path.flowlabel_hoplimit).value(), 0x0abcde40U);
  EXPECT_EQ(data.path.tclass, 9);
  EXPECT_EQ(data.path.pkey, record.pkey);
  EXPECT_EQ(std::bit_cast<Be16>(data.path.qosclass_sl).value(), 5);
  EXPECT_EQ(data.path.mtu, 0x85);
  EXPECT_EQ(data.path.rate, 0x83);
  EXPECT_EQ(data.path.packetlifetime, 0x92);
  EXPECT_EQ(data.path.reversible_numpath, 0x81);
}

}  // namespace
}  // namespace ipoverbs::verbs
