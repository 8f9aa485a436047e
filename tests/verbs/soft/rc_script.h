// What scripts about the reliable connection are written with: packets as short words.
//
//   "first 10", "middle 11", "last 12 A", "only 13 A S", "only+imm 14"    requests: opcode, PSN,
//                                                                          AckReq, solicited
//   "ack 12 msn 1", "rnr(1) 12", "nak(0) 12"                               answers
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "verbs/soft/burst.h"
#include "verbs/soft/completion_ring.h"
#include "verbs/soft/memory_table.h"
#include "verbs/soft/roce.h"

namespace ipoverbs::verbs::soft::script {

using namespace std::chrono_literals;

inline constexpr TimePoint kStart{};
inline constexpr std::uint32_t kMtu = 256;  // of the path

[[nodiscard]] inline std::string describe_answer(const Packet& packet) {
  const std::uint8_t syndrome = packet.aeth.syndrome;
  const std::uint32_t psn = packet.bth.psn().value();
  switch (ack_kind(syndrome)) {
    case AckKind::Ack:
      return fmt::format("ack {} msn {}", psn, packet.aeth.msn.value());
    case AckKind::RnrNak:
      return fmt::format("rnr({}) {}", syndrome & 0x1f, psn);
    case AckKind::Nak:
      return fmt::format("nak({}) {}", syndrome & 0x1f, psn);
    case AckKind::Reserved:
      break;
  }
  return "reserved";
}

[[nodiscard]] inline std::string describe(const Packet& packet) {
  using enum Opcode;
  const char* name = "?";
  switch (packet.opcode()) {
    case SendFirst:
      name = "first";
      break;
    case SendMiddle:
      name = "middle";
      break;
    case SendLast:
      name = "last";
      break;
    case SendLastImm:
      name = "last+imm";
      break;
    case SendOnly:
      name = "only";
      break;
    case SendOnlyImm:
      name = "only+imm";
      break;
    case Acknowledge:
      return describe_answer(packet);
    case CongestionNotification:
      return "cnp";
    default:
      break;
  }
  return fmt::format("{} {}{}{}", name, packet.bth.psn().value(),
                     packet.bth.wants_ack() ? " A" : "", packet.bth.solicited() ? " S" : "");
}

// Empties the burst: its packets in words, separated by ", ".
[[nodiscard]] inline std::string take(Burst& burst) {
  std::vector<std::string> words;
  for (const Segment& segment : burst.segments()) {
    std::vector<std::byte> bytes(segment.size());
    burst.write(segment, 0, bytes);
    const auto packet = parse(bytes);
    words.push_back(packet ? describe(*packet) : to_string(packet.error()));
  }
  burst.clear();
  return fmt::format("{}", fmt::join(words, ", "));
}

// Polls everything: "id status" with the length of received messages, separated by ", ".
[[nodiscard]] inline std::string take(CompletionRing& completions) {
  std::vector<std::string> words;
  ibv_wc wc{};
  while (completions.pop({&wc, 1}) == 1) {
    std::string word = fmt::format("{}", wc.wr_id);
    if (wc.status != IBV_WC_SUCCESS) word += fmt::format(" status {}", static_cast<int>(wc.status));
    if (wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV) {
      word += fmt::format(" got {}", wc.byte_len);
    }
    words.push_back(word);
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

[[nodiscard]] inline Packet ack(std::uint32_t psn) {
  Packet packet;
  packet.bth.opcode = static_cast<std::uint8_t>(Opcode::Acknowledge);
  packet.bth.sequence = Be24(psn);
  packet.aeth.syndrome = kAckWithoutCredits;
  return packet;
}

[[nodiscard]] inline Packet nak(NakCode code, std::uint32_t psn) {
  Packet packet = ack(psn);
  packet.aeth.syndrome = nak_syndrome(code);
  return packet;
}

[[nodiscard]] inline Packet rnr(std::uint8_t timer, std::uint32_t psn) {
  Packet packet = ack(psn);
  packet.aeth.syndrome = rnr_syndrome(timer);
  return packet;
}

// A request packet; its payload has to stay alive.
[[nodiscard]] inline Packet request(Opcode opcode, std::uint32_t psn,
                                    std::span<const std::byte> payload, bool ask = false) {
  Packet packet;
  packet.bth.opcode = static_cast<std::uint8_t>(opcode);
  packet.bth.sequence = Be24(psn);
  packet.bth.ack_request = ask ? Bth::kAckRequest : std::uint8_t{0};
  packet.payload = payload;
  return packet;
}

[[nodiscard]] inline Path path() {
  return {Endpoint{*IpAddress::parse("192.0.2.1"), 0xc001, 0},
          Endpoint{*IpAddress::parse("192.0.2.2"), kRocePort, 0}};
}

// Bytes of memory, registered.
class Memory {
 public:
  Memory(MemoryTable& table, std::size_t size) : bytes_(size), key_(*table.add(bytes_)) {}
  [[nodiscard]] std::span<std::byte> bytes() { return bytes_; }
  [[nodiscard]] ibv_sge sge(std::size_t offset, std::size_t length) {
    return {std::bit_cast<std::uint64_t>(bytes_.data() + offset),
            static_cast<std::uint32_t>(length), key_.value()};
  }

 private:
  std::vector<std::byte> bytes_;
  LocalKey key_;
};

}  // namespace ipoverbs::verbs::soft::script
