#include "verbs/soft/cm_message.h"

#include <algorithm>
#include <concepts>
#include <type_traits>
#include <utility>

namespace ipoverbs::verbs::soft {

namespace {

// One visitor for each direction walks the same layout.

template <class T>
T from_raw(std::uint64_t raw) {
  if constexpr (std::is_same_v<T, bool>) {
    return raw != 0;
  } else if constexpr (requires(const T& t) { t.value(); }) {
    return T(static_cast<decltype(T().value())>(raw));  // Strong, Psn
  } else {
    return static_cast<T>(raw);
  }
}

template <class T>
std::uint64_t to_raw(const T& value) {
  if constexpr (requires { value.value(); }) {
    return value.value();
  } else {
    return static_cast<std::uint64_t>(value);
  }
}

struct Reader {
  std::span<const std::byte> bytes;
  template <class T>
  void operator()(BitField field, T& value) const {
    value = from_raw<T>(get_bits(bytes, field));
  }
  template <std::size_t N>
  void operator()(std::size_t offset, std::array<std::byte, N>& value) const {
    std::ranges::copy(bytes.subspan(offset, N), value.begin());
  }
};

struct Writer {
  std::span<std::byte> bytes;
  template <class T>
  void operator()(BitField field, const T& value) const {
    set_bits(bytes, field, to_raw(value));
  }
  template <std::size_t N>
  void operator()(std::size_t offset, const std::array<std::byte, N>& value) const {
    std::ranges::copy(value, bytes.subspan(offset, N).begin());
  }
};

struct Marker {
  std::span<std::byte> bytes;
  template <class T>
  void operator()(BitField field, const T&) const {
    set_bits(bytes, field, widest(field));
  }
  template <std::size_t N>
  void operator()(std::size_t offset, const std::array<std::byte, N>&) const {
    std::ranges::fill(bytes.subspan(offset, N), std::byte{0xff});
  }
};

// M is T, const or not.
template <class M, class T>
concept Some = std::same_as<std::remove_const_t<M>, T>;

constexpr BitField byte_at(std::size_t offset) { return {offset, 0, 8}; }
constexpr BitField word_at(std::size_t offset) { return {offset, 0, 16}; }
constexpr BitField number_at(std::size_t offset) { return {offset, 0, 24}; }
constexpr BitField long_at(std::size_t offset) { return {offset, 0, 32}; }
constexpr BitField quad_at(std::size_t offset) { return {offset, 0, 64}; }

// Offsets count from the end of the MAD header. Bits: {byte, first bit, width}.

template <class Io, Some<CmPath> M>
void layout(const Io& io, std::size_t base, M& m) {
  io(word_at(base), m.local_lid);
  io(word_at(base + 2), m.remote_lid);
  io(base + 4, m.local_gid.bytes);
  io(base + 20, m.remote_gid.bytes);
  io(BitField{base + 36, 0, 20}, m.flow_label);
  io(BitField{base + 39, 2, 6}, m.packet_rate);
  io(byte_at(base + 40), m.traffic_class);
  io(byte_at(base + 41), m.hop_limit);
  io(BitField{base + 42, 0, 4}, m.service_level);
  io(BitField{base + 42, 4, 1}, m.subnet_local);
  io(BitField{base + 43, 0, 5}, m.local_ack_timeout);
}

constexpr std::uint16_t kAttributeReq = 0x10;
template <class Io, Some<ConnectRequestMessage> M>
void layout(const Io& io, M& m) {
  io(long_at(0), m.local_comm_id);
  io(quad_at(8), m.service_id);
  io(quad_at(16), m.local_ca_guid);
  io(long_at(28), m.local_q_key);
  io(number_at(32), m.local_qpn);
  io(byte_at(35), m.responder_resources);
  io(number_at(36), m.local_eecn);
  io(byte_at(39), m.initiator_depth);
  io(number_at(40), m.remote_eecn);
  io(BitField{43, 0, 5}, m.remote_cm_response_timeout);
  io(BitField{43, 5, 2}, m.transport);
  io(BitField{43, 7, 1}, m.end_to_end_flow_control);
  io(number_at(44), m.starting_psn);
  io(BitField{47, 0, 5}, m.local_cm_response_timeout);
  io(BitField{47, 5, 3}, m.retry_count);
  io(word_at(48), m.partition_key);
  io(BitField{50, 0, 4}, m.path_mtu);
  io(BitField{50, 4, 1}, m.rdc_exists);
  io(BitField{50, 5, 3}, m.rnr_retry_count);
  io(BitField{51, 0, 4}, m.max_cm_retries);
  io(BitField{51, 4, 1}, m.srq);
  io(BitField{51, 5, 3}, m.extended_transport);
  layout(io, 52, m.primary);
  layout(io, 96, m.alternate);
  io(140, m.private_data);
}

constexpr std::uint16_t kAttributeMra = 0x11;
template <class Io, Some<ReceiptAckMessage> M>
void layout(const Io& io, M& m) {
  io(long_at(0), m.local_comm_id);
  io(long_at(4), m.remote_comm_id);
  io(BitField{8, 0, 2}, m.answered);
  io(BitField{9, 0, 5}, m.service_timeout);
  io(10, m.private_data);
}

constexpr std::uint16_t kAttributeRej = 0x12;
template <class Io, Some<RejectMessage> M>
void layout(const Io& io, M& m) {
  io(long_at(0), m.local_comm_id);
  io(long_at(4), m.remote_comm_id);
  io(BitField{8, 0, 2}, m.answered);
  io(BitField{9, 0, 7}, m.information_length);
  io(word_at(10), m.reason);
  io(12, m.information);
  io(84, m.private_data);
}

constexpr std::uint16_t kAttributeRep = 0x13;
template <class Io, Some<ConnectReplyMessage> M>
void layout(const Io& io, M& m) {
  io(long_at(0), m.local_comm_id);
  io(long_at(4), m.remote_comm_id);
  io(long_at(8), m.local_q_key);
  io(number_at(12), m.local_qpn);
  io(number_at(16), m.local_eecn);
  io(number_at(20), m.starting_psn);
  io(byte_at(24), m.responder_resources);
  io(byte_at(25), m.initiator_depth);
  io(BitField{26, 0, 5}, m.target_ack_delay);
  io(BitField{26, 5, 2}, m.failover_accepted);
  io(BitField{26, 7, 1}, m.end_to_end_flow_control);
  io(BitField{27, 0, 3}, m.rnr_retry_count);
  io(BitField{27, 3, 1}, m.srq);
  io(quad_at(28), m.local_ca_guid);
  io(36, m.private_data);
}

constexpr std::uint16_t kAttributeRtu = 0x14;
template <class Io, Some<ReadyToUseMessage> M>
void layout(const Io& io, M& m) {
  io(long_at(0), m.local_comm_id);
  io(long_at(4), m.remote_comm_id);
  io(8, m.private_data);
}

constexpr std::uint16_t kAttributeDreq = 0x15;
template <class Io, Some<DisconnectRequestMessage> M>
void layout(const Io& io, M& m) {
  io(long_at(0), m.local_comm_id);
  io(long_at(4), m.remote_comm_id);
  io(number_at(8), m.remote_qpn);
  io(12, m.private_data);
}

constexpr std::uint16_t kAttributeDrep = 0x16;
template <class Io, Some<DisconnectReplyMessage> M>
void layout(const Io& io, M& m) {
  io(long_at(0), m.local_comm_id);
  io(long_at(4), m.remote_comm_id);
  io(8, m.private_data);
}

constexpr std::uint16_t kAttributeSidrReq = 0x17;  // service ID resolution, for datagrams
constexpr std::uint16_t kAttributeApr = 0x1a;      // 0x18 SIDR_REP, 0x19 LAP

struct KindName {
  std::uint16_t attribute;
  const char* name;
};
// In the order of CmBody's alternatives.
constexpr std::array kKinds{
    KindName{kAttributeReq, "REQ"},   KindName{kAttributeMra, "MRA"},
    KindName{kAttributeRej, "REJ"},   KindName{kAttributeRep, "REP"},
    KindName{kAttributeRtu, "RTU"},   KindName{kAttributeDreq, "DREQ"},
    KindName{kAttributeDrep, "DREP"},
};
static_assert(kKinds.size() == std::variant_size_v<CmBody>);

template <class T>
CmBody read_body(std::span<const std::byte> bytes) {
  T message;
  layout(Reader{bytes}, message);
  return message;
}

CmBody parse_body(std::size_t kind, std::span<const std::byte> bytes) {
  using Parse = CmBody (*)(std::span<const std::byte>);
  static constexpr auto kParsers = []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<Parse, sizeof...(I)>{&read_body<std::variant_alternative_t<I, CmBody>>...};
  }(std::make_index_sequence<std::variant_size_v<CmBody>>());
  return kParsers.at(kind)(bytes);
}

}  // namespace

std::expected<CmMessage, CmParseError> parse_cm(std::span<const std::byte> mad) {
  if (mad.size() != kMadSize) {
    return std::unexpected(CmParseError::BadSize);
  }
  if (get_bits(mad, mad::kBaseVersion) != kMadBaseVersion ||
      get_bits(mad, mad::kManagementClass) != kMadClassCm ||
      get_bits(mad, mad::kMethod) != kMadMethodSend) {
    return std::unexpected(CmParseError::OtherClass);
  }
  if (get_bits(mad, mad::kClassVersion) != kMadClassVersionCm) {
    return std::unexpected(CmParseError::BadClassVersion);
  }
  const auto attribute = static_cast<std::uint16_t>(get_bits(mad, mad::kAttributeId));
  const auto* kind = std::ranges::find(kKinds, attribute, &KindName::attribute);
  if (kind == kKinds.end()) {
    const bool known = attribute >= kAttributeSidrReq && attribute <= kAttributeApr;
    return std::unexpected(known ? CmParseError::UnsupportedAttribute
                                 : CmParseError::UnknownAttribute);
  }
  CmMessage message;
  Reader{mad}(mad::kTransactionId, message.transaction);
  message.body =
      parse_body(static_cast<std::size_t>(kind - kKinds.begin()), mad.subspan(kMadHeaderSize));
  return message;
}

Mad emit_cm(const CmMessage& message) {
  Mad mad{};
  set_bits(mad, mad::kBaseVersion, kMadBaseVersion);
  set_bits(mad, mad::kManagementClass, kMadClassCm);
  set_bits(mad, mad::kClassVersion, kMadClassVersionCm);
  set_bits(mad, mad::kMethod, kMadMethodSend);
  set_bits(mad, mad::kTransactionId, message.transaction.value());
  set_bits(mad, mad::kAttributeId, kKinds.at(message.body.index()).attribute);
  const Writer writer{std::span(mad).subspan(kMadHeaderSize)};
  std::visit([&](const auto& body) { layout(writer, body); }, message.body);
  return mad;
}

const char* name_of(const CmBody& body) { return kKinds.at(body.index()).name; }

Mad described_bits(const CmBody& kind) {
  Mad mad{};
  for (const BitField field : {mad::kBaseVersion, mad::kManagementClass, mad::kClassVersion,
                               mad::kMethod, mad::kTransactionId, mad::kAttributeId}) {
    set_bits(mad, field, widest(field));
  }
  const Marker marker{std::span(mad).subspan(kMadHeaderSize)};
  std::visit([&](const auto& body) { layout(marker, body); }, kind);
  return mad;
}

}  // namespace ipoverbs::verbs::soft
