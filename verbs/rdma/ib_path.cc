#include "verbs/rdma/ib_path.h"

#include <bit>

#include "core/byte_order.h"

namespace ipoverbs::verbs {

namespace {
std::uint16_t big16(unsigned value) {
  return std::bit_cast<std::uint16_t>(Be16(static_cast<std::uint16_t>(value)));
}
std::uint32_t big32(std::uint32_t value) { return std::bit_cast<std::uint32_t>(Be32(value)); }
std::uint32_t host32(std::uint32_t value) { return std::bit_cast<Be32>(value).value(); }

// MTU, rate and packet lifetime carry a two-bit selector on top: 2 says "exactly".
std::uint8_t exactly(unsigned value) { return static_cast<std::uint8_t>(0x80U | (value & 0x3fU)); }
}  // namespace

ibv_path_data path_with_service_level(const ibv_sa_path_rec& record, std::uint8_t service_level) {
  ibv_path_data data{};
  data.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
  ibv_path_record& path = data.path;
  path.dgid = record.dgid;
  path.sgid = record.sgid;
  path.dlid = record.dlid;
  path.slid = record.slid;
  path.flowlabel_hoplimit = big32((host32(record.flow_label) & 0xfffffU) << 8 | record.hop_limit);
  path.tclass = record.traffic_class;
  path.reversible_numpath = IBV_PATH_RECORD_REVERSIBLE | 1;
  path.pkey = record.pkey;
  path.qosclass_sl = big16(service_level & 0xfU);
  path.mtu = exactly(record.mtu);
  path.rate = exactly(record.rate);
  path.packetlifetime = exactly(record.packet_life_time);
  return data;
}

}  // namespace ipoverbs::verbs
