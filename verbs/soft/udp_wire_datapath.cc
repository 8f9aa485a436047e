#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "verbs/soft/udp_socket.h"
#include "verbs/soft/udp_wire.h"
#include "verbs/soft/udp_wire_buffers.h"

namespace ipoverbs::verbs::soft {

namespace {

// A UDP payload over IPv4; IPv6 would take 20 more.
constexpr std::size_t kLargestSend = 65507;

socklen_t address_size(const Endpoint& endpoint) {
  return endpoint.address.is_v4() ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

// Takes over what the kernel says about a received buffer.
void read_control(msghdr& message, Received& received) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
      int segment = 0;
      std::memcpy(&segment, CMSG_DATA(c), sizeof segment);
      received.segment = static_cast<std::size_t>(segment);
    } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
      received.traffic_class = *CMSG_DATA(c);
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
      int traffic_class = 0;
      std::memcpy(&traffic_class, CMSG_DATA(c), sizeof traffic_class);
      received.traffic_class = static_cast<std::uint8_t>(traffic_class);
    }
  }
}

}  // namespace

void UdpWire::Outgoing::add_piece(std::span<const std::byte> bytes) noexcept {
  // iovec is not const-correct; sendmmsg only reads.
  pieces[piece_count++] = {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

void UdpWire::Incoming::prepare(std::size_t i) noexcept {
  messages[i].msg_hdr.msg_namelen = sizeof(sockaddr_storage);
  messages[i].msg_hdr.msg_controllen = sizeof(Control);
}

void UdpWire::send(const Burst& burst, TimePoint /*now*/) noexcept {
  for (std::size_t next = 0; next < burst.segments().size();) next = send_from(burst, next);
}

// Sends segments from `first` on, at least one; returns the first that is still to be sent.
std::size_t UdpWire::send_from(const Burst& burst, std::size_t first) noexcept {
  const std::size_t end = build(burst, first);
  const std::size_t refused = flush();
  const Outgoing& out = *outgoing_;
  if (refused == out.count) return end;
  const std::size_t run = out.run[refused];
  first = out.first[refused];
  send_singly(burst, first, run);
  return first + run;
}

// Sends what was built, up to a run that the kernel refuses as such; returns where that is.
std::size_t UdpWire::flush() noexcept {
  Outgoing& out = *outgoing_;
  std::size_t done = 0;
  while (done < out.count) {
    const int n = ::sendmmsg(send_.get(), &out.messages[done],
                             static_cast<unsigned>(out.count - done), MSG_DONTWAIT);
    if (n > 0) {
      counters_.sends.add(static_cast<unsigned>(n));
      for (int i = 0; i < n; ++i, ++done) {
        counters_.segments.add(out.run[done]);
        if (out.run[done] > 1) refusals_ = 0;
      }
      continue;
    }
    const int error = errno;
    if (error == EINTR) continue;
    if (refuses_segmentation(error, out.run[done])) break;
    count_error(error, out.run[done]);
    ++done;
  }
  return done;
}

// The datagrams of a run that was refused.
void UdpWire::send_singly(const Burst& burst, std::size_t first, std::size_t count) noexcept {
  Outgoing& out = *outgoing_;
  out.count = out.piece_count = out.trailer_count = 0;
  for (std::size_t i = 0; i < count; ++i) build_run(burst, first + i, 1);
  counters_.refused_runs.add();
  const std::uint64_t before = counters_.segments.value();
  static_cast<void>(flush());  // all of it: no run is left to refuse
  // Where not one of them leaves either, it is not for being a run that it was refused.
  if (counters_.segments.value() > before && ++refusals_ >= kRefusals) disable_segmentation();
}

void UdpWire::disable_segmentation() noexcept {
  segmentation_ = false;
  counters_.segmentation_off.set(1);
}

// Fills outgoing_ with all from `first` on that has one traffic class; returns where that ends.
std::size_t UdpWire::build(const Burst& burst, std::size_t first) noexcept {
  const auto segments = burst.segments();
  Outgoing& out = *outgoing_;
  out.count = out.piece_count = out.trailer_count = 0;
  set_class(*segments[first].path);
  while (first < segments.size() && segments[first].path->traffic_class() == traffic_class_) {
    const std::size_t run = segmentation_ ? burst.run_length(first, kLargestSend) : 1;
    build_run(burst, first, run);
    first += run;
  }
  return first;
}

void UdpWire::build_run(const Burst& burst, std::size_t first, std::size_t count) noexcept {
  Outgoing& out = *outgoing_;
  const std::size_t m = out.count++;
  const Segment& head = burst.segments()[first];
  const std::size_t first_piece = out.piece_count;
  for (std::size_t i = 0; i < count; ++i) {
    const Segment& segment = burst.segments()[first + i];
    out.add_piece(std::span(segment.headers).first(segment.header_size));
    for (const auto piece : burst.pieces(segment)) out.add_piece(piece);
    auto& trailer = out.trailers[out.trailer_count++];
    const std::size_t size = burst.write_trailer(segment, static_cast<std::uint16_t>(i), trailer);
    out.add_piece(std::span(trailer).first(size));
  }
  out.first[m] = static_cast<std::uint8_t>(first);
  out.run[m] = static_cast<std::uint8_t>(count);
  out.addresses[m] = head.path->remote().to_sockaddr();
  msghdr& message = out.messages[m].msg_hdr;
  message.msg_name = &out.addresses[m];
  message.msg_namelen = address_size(head.path->remote());
  message.msg_iov = &out.pieces[first_piece];
  message.msg_iovlen = out.piece_count - first_piece;
  message.msg_control = nullptr;
  message.msg_controllen = 0;
  if (count == 1) return;
  message.msg_control = out.controls[m].bytes.data();
  message.msg_controllen = sizeof(Outgoing::Control);
  cmsghdr* const control = CMSG_FIRSTHDR(&message);
  control->cmsg_level = IPPROTO_UDP;
  control->cmsg_type = UDP_SEGMENT;
  control->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
  const auto size = static_cast<std::uint16_t>(head.size());
  std::memcpy(CMSG_DATA(control), &size, sizeof size);
}

// Linux: EIO without checksum offload, EINVAL for a segment longer than the path's MTU, and both
// for what a tunnel device on the way cannot do.
bool UdpWire::refuses_segmentation(int error, std::size_t run) const noexcept {
  return run > 1 && (error == EINVAL || error == EIO || error == EOPNOTSUPP || error == EMSGSIZE);
}

void UdpWire::count_error(int error, std::size_t datagrams) noexcept {
  const auto counter = [&]() -> Gauge& {
    switch (error) {
      case EMSGSIZE:
        return counters_.too_long;
      case EAGAIN:
      case ENOBUFS:
      case ENOMEM:
        return counters_.no_room;
      case ENETUNREACH:
      case EHOSTUNREACH:
      case ENETDOWN:
      case EHOSTDOWN:
      case ENONET:
      case EADDRNOTAVAIL:
        return counters_.unreachable;
      case EPERM:
      case EACCES:
        return counters_.forbidden;
      default:
        return counters_.send_errors;
    }
  };
  counter().add(datagrams);
}

void UdpWire::set_class(const Path& path) noexcept {
  if (path.traffic_class() == traffic_class_) return;
  traffic_class_ = path.traffic_class();
  if (!set_traffic_class(send_.get(), path.remote().address.family(), traffic_class_)) {
    counters_.refused_classes.add();
  }
}

void UdpWire::send_one(const Path& path, std::span<const std::byte> datagram,
                       TimePoint /*now*/) noexcept {
  set_class(path);
  const sockaddr_storage address = path.remote().to_sockaddr();
  const ssize_t n =
      ::sendto(send_.get(), datagram.data(), datagram.size(), MSG_DONTWAIT,
               reinterpret_cast<const sockaddr*>(&address), address_size(path.remote()));
  if (n < 0) {
    count_error(errno, 1);
    return;
  }
  counters_.sends.add();
  counters_.segments.add();
}

std::span<const Received> UdpWire::receive(TimePoint /*now*/) noexcept {
  Incoming& in = *incoming_;
  const int n = ::recvmmsg(receive_, in.messages.data(), kBatch, MSG_DONTWAIT, nullptr);
  if (n <= 0) {
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) counters_.receive_errors.add();
    return {};
  }
  const auto count = static_cast<std::size_t>(n);
  counters_.receives.add(count);
  for (std::size_t i = 0; i < count; ++i) {
    Received& received = received_[i];
    received = {};
    received.bytes = std::span(in.buffers).subspan(i * kBuffer, in.messages[i].msg_len);
    read_control(in.messages[i].msg_hdr, received);
    const auto& address = reinterpret_cast<const sockaddr&>(in.addresses[i]);
    if (const auto source = Endpoint::from_sockaddr(address)) received.source = *source;
    in.prepare(i);
  }
  return std::span(received_).first(count);
}

}  // namespace ipoverbs::verbs::soft
