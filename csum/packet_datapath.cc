#include <cassert>
#include <cstring>
#include <expected>

#include "core/byte_order.h"
#include "csum/csum.h"
#include "csum/packet.h"

namespace ipoverbs::csum {
namespace {

constexpr std::size_t kIpv4ChecksumAt = 10;

// A sum that is to be taken: over [start, end), to which `seed` is added, for the field at `field`.
struct Task {
  std::uint32_t start;
  std::uint32_t end;
  std::uint32_t field;
  Partial seed;
};

// What has to be summed to complete the checksum of `packet`, or why it can't be.
std::expected<Task, Completion> plan(std::span<const std::byte> packet,
                                     ChecksumPlace place) noexcept {
  const Layout layout = locate(packet);
  if (layout.kind == LayoutKind::malformed) return std::unexpected(Completion::malformed);
  if (layout.kind == LayoutKind::fragment) return std::unexpected(Completion::fragment);
  const std::uint32_t field = std::uint32_t{place.start} + place.offset;
  if (place.start < layout.ip_header || field + 2 > layout.ip_end) {
    return std::unexpected(Completion::bad_place);
  }
  Task task{place.start, layout.ip_end, field, {}};
  if (layout.kind == LayoutKind::opaque) return task;
  if (place.start == layout.start && place.offset == layout.field) {
    task.end = layout.end;
    // What the field holds is summed with the rest, and taken off again here.
    task.seed = layout.pseudo_header + -Partial(load<Be16>(packet, field));
    return task;
  }
  if (place.start <= layout.start || layout.protocol != Protocol::udp) {
    return std::unexpected(Completion::bad_place);
  }
  return task;
}

// Both zeros of one's complement become 0xffff.
Be16 field_of(Partial sum) noexcept { return udp_checksum(sum); }

Verdict verdict_of(const Layout& layout, Be16 field, Partial covered) noexcept {
  if (layout.protocol == Protocol::udp && field == Be16{}) {
    return layout.v4 ? Verdict::absent : Verdict::zero_in_ipv6;
  }
  return is_valid(layout.pseudo_header + covered) ? Verdict::valid : Verdict::wrong;
}

Be16 checksum_field(std::span<const std::byte> packet, const Layout& layout) noexcept {
  return load<Be16>(packet, layout.start + layout.field);
}

// The verdict if the transport checksum doesn't come into it.
std::optional<Verdict> verdict_before_transport(std::span<const std::byte> packet,
                                                const Layout& layout) noexcept {
  if (layout.kind == LayoutKind::malformed) return Verdict::malformed;
  if (layout.v4 && !is_ipv4_header_valid(packet.first(layout.ip_header))) {
    return Verdict::wrong_ip_header;
  }
  if (layout.kind != LayoutKind::covered) return Verdict::unknown;
  return std::nullopt;
}

}  // namespace

Completion complete(std::span<std::byte> packet, ChecksumPlace place) noexcept {
  const auto task = plan(packet, place);
  if (!task) return task.error();
  const std::span<const std::byte> covered = packet.subspan(task->start, task->end - task->start);
  store(packet, task->field, field_of(csum::sum(covered, task->seed)));
  return Completion::done;
}

Completion copy_and_complete(std::span<std::byte> to, std::span<const std::byte> packet,
                             ChecksumPlace place) noexcept {
  assert(packet.size() <= to.size());
  const auto task = plan(packet, place);
  if (!task) return task.error();
  std::memcpy(to.data(), packet.data(), task->start);
  const Partial total = copy(to.subspan(task->start),
                             packet.subspan(task->start, task->end - task->start), task->seed);
  std::memcpy(to.data() + task->end, packet.data() + task->end, packet.size() - task->end);
  store(to, task->field, field_of(total));
  return Completion::done;
}

Verdict verify(std::span<const std::byte> packet) noexcept {
  return verify(packet, locate(packet));
}

Verdict verify(std::span<const std::byte> packet, const Layout& layout) noexcept {
  if (const auto verdict = verdict_before_transport(packet, layout)) return *verdict;
  const Be16 field = checksum_field(packet, layout);
  const bool none = layout.protocol == Protocol::udp && field == Be16{};
  return verdict_of(layout, field, none ? Partial{} : csum::sum(layout.covered_part(packet)));
}

Verdict verify(std::span<const std::byte> packet, const Layout& layout, Partial covered) noexcept {
  if (const auto verdict = verdict_before_transport(packet, layout)) return *verdict;
  return verdict_of(layout, checksum_field(packet, layout), covered);
}

std::optional<ChecksumPlace> make_partial(std::span<std::byte> packet,
                                          const Layout& layout) noexcept {
  if (layout.kind != LayoutKind::covered || layout.end != packet.size()) return std::nullopt;
  if (layout.protocol != Protocol::tcp && layout.protocol != Protocol::udp) return std::nullopt;
  if (layout.protocol == Protocol::udp && checksum_field(packet, layout) == Be16{}) {
    return std::nullopt;
  }
  store(packet, layout.start + layout.field, fold(layout.pseudo_header));
  return ChecksumPlace{static_cast<std::uint16_t>(layout.start),
                       static_cast<std::uint16_t>(layout.field)};
}

Be16 ipv4_header_checksum(std::span<const std::byte> header) noexcept {
  assert(header.size() >= 20 && header.size() <= 60 && header.size() % 4 == 0);
  return checksum(csum::sum(header, -Partial(load<Be16>(header, kIpv4ChecksumAt))));
}

bool is_ipv4_header_valid(std::span<const std::byte> header) noexcept {
  assert(header.size() >= 20 && header.size() <= 60 && header.size() % 4 == 0);
  return is_valid(csum::sum(header));
}

}  // namespace ipoverbs::csum
