#include "tests/softroce/verbs_fixture.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <utility>

namespace ipoverbs::verbs::test {

void run(const std::string& command) { ASSERT_EQ(std::system(command.c_str()), 0) << command; }

std::string output_of(const std::string& command) {
  std::string all;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return all;
  std::array<char, 4096> some{};
  while (const std::size_t n = std::fread(some.data(), 1, some.size(), pipe)) {
    all.append(some.data(), n);
  }
  ::pclose(pipe);
  return all;
}

void Link::SetUp() {
  if (::getuid() != 0 || !std::filesystem::exists("/dev/infiniband/rdma_cm")) {
    GTEST_SKIP() << "needs root and rdma_rxe: run it in the guest";
  }
  if (std::filesystem::exists("/sys/class/net/v0")) return;  // of a run before
  // Both ends are in one namespace: without accept_local the kernel refuses what comes from an
  // address of its own.
  run("sysctl -qw net.ipv4.conf.all.accept_local=1 net.ipv4.conf.default.accept_local=1 "
      "net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 "
      "net.ipv6.conf.default.accept_dad=0");
  run("ip link add v0 mtu 4500 type veth peer name v1 mtu 4500");
  run("ip addr add 10.77.0.1/24 dev v0 && ip addr add 10.77.0.2/24 dev v1");
  // IPv6 would take one end's packets to the other over lo, because the other's address is local:
  // the table of local addresses is for what comes in, the rest goes by interface.
  run("ip -6 rule add pref 1 iif v0 lookup local && ip -6 rule add pref 1 iif v1 lookup local && "
      "ip -6 rule add pref 2 to fd77::/64 lookup main");
  run("ip -6 rule add pref 3 lookup local && ip -6 rule delete pref 0");
  run("ip addr add fd77::1/64 dev v0 nodad && ip addr add fd77::2/64 dev v1 nodad");
  run("ip link set v0 up && ip link set v1 up");
  run("rdma link add rxe0 type rxe netdev v0 && rdma link add rxe1 type rxe netdev v1");
}

Side::Side(const std::string& text, ConnectionTimers timers)
    : address{*IpAddress::parse(text), 0, 0} {
  DeviceRequest request;
  request.underlay = address;
  request.timers = timers;
  device = open_rdma_device(request, *logger);
  region = device->register_memory(memory.bytes());
  completions = device->create_completion_queue(256);
  shared_receives = device->create_shared_receive_queue(16);
}

void Side::on_event(Event& event) {
  if (hook) hook(event);
  events.push_back({event.kind, event.connection,
                    std::vector(event.private_data.begin(), event.private_data.end()), event.detail,
                    event.status});
  if (event.incoming && answer == Answer::Keep) incoming.push_back(std::move(event.incoming));
}

int Side::count(EventKind kind) const {
  return static_cast<int>(std::ranges::count(events, kind, &Recorded::kind));
}

const Recorded& Side::last(EventKind kind) const {
  static const Recorded none{};
  const auto found = std::find_if(events.rbegin(), events.rend(),
                                  [&](const Recorded& r) { return r.kind == kind; });
  EXPECT_NE(found, events.rend()) << "no event: " << to_string(kind);
  return found == events.rend() ? none : *found;
}

QueuePairConfig Side::queues(bool shared) const {
  return {.completion_queue = completions.get(),
          .shared_receive_queue = shared ? shared_receives.get() : nullptr,
          .send_depth = 32,
          .receive_depth = 16,
          .send_sge = 2};
}

ibv_sge Side::sge(std::size_t index, std::size_t size) const {
  return {.addr = reinterpret_cast<std::uintptr_t>(buffer(index).data()),
          .length = static_cast<std::uint32_t>(size),
          .lkey = region->local_key().value()};
}

void Side::post_receives(Connection* connection, std::size_t first, std::size_t count) {
  for (std::size_t i = first; i < first + count; ++i) {
    ibv_sge piece = sge(i);
    ibv_recv_wr request{};
    request.wr_id = i;
    request.sg_list = &piece;
    request.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    const int error = connection != nullptr
                          ? ibv_post_recv(connection->queue_pair(), &request, &bad)
                          : ibv_post_srq_recv(shared_receives->raw(), &request, &bad);
    ASSERT_EQ(error, 0);
  }
}

void Side::post_sends(const Connection& connection, std::size_t first, std::size_t count) const {
  std::vector<ibv_sge> pieces(count);
  std::vector<ibv_send_wr> chain(count);
  for (std::size_t i = 0; i < count; ++i) {
    pieces[i] = sge(first + i);
    chain[i].wr_id = first + i;
    chain[i].sg_list = &pieces[i];
    chain[i].num_sge = 1;
    chain[i].opcode = IBV_WR_SEND;
    if (i + 1 < count) chain[i].next = &chain[i + 1];
  }
  chain.back().send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(connection.queue_pair(), chain.data(), &bad), 0);
}

void LeavesNothing::SetUp() { untouched_ = rdma_resources(); }

void LeavesNothing::TearDown() {
  const TimePoint end = monotonic_now() + std::chrono::seconds(2);
  while (rdma_resources() != untouched_ && monotonic_now() < end) ::usleep(10'000);
  EXPECT_EQ(rdma_resources(), untouched_);
}

void TwoSides::SetUp() {
  LeavesNothing::SetUp();
  open();
}

void TwoSides::TearDown() {
  out.reset();
  in.reset();
  dialler.reset();
  listener.reset();
  LeavesNothing::TearDown();
}

void TwoSides::open() {
  dialler = std::make_unique<Side>("10.77.0.1");
  listener = std::make_unique<Side>("10.77.0.2");
  listener->device->listen(kPort);
}

bool TwoSides::until(const std::function<bool()>& done, std::chrono::milliseconds limit) {
  const TimePoint end = monotonic_now() + limit;
  while (!done()) {
    if (monotonic_now() > end) return false;
    std::array<pollfd, 2> fds{};
    nfds_t n = 0;
    for (const auto& side : {dialler.get(), listener.get()}) {
      if (side != nullptr && side->device) fds.at(n++) = {side->device->event_fd(), POLLIN, 0};
    }
    ::poll(fds.data(), n, 10);
    for (const auto& side : {dialler.get(), listener.get()}) {
      if (side != nullptr && side->device) side->device->process_events(*side);
    }
  }
  return true;
}

std::unique_ptr<Connection> TwoSides::dial() {
  return dialler->device->dial({.endpoint = {listener->address.address, kPort, 0}}, {});
}

void TwoSides::connect(bool shared, std::span<const std::byte> hello,
                       std::span<const std::byte> answer) {
  const int established = dialler->count(EventKind::Established);
  const int accepted = listener->count(EventKind::Established);
  const int resolved = dialler->count(EventKind::RouteResolved);
  out = dial();
  ASSERT_TRUE(until([&] { return dialler->count(EventKind::RouteResolved) > resolved; }));
  out->create_queue_pair(dialler->queues(shared));
  if (!shared) dialler->post_receives(out.get(), 0, 16);
  out->connect(hello);
  ASSERT_TRUE(until([&] { return !listener->incoming.empty(); }));
  in = std::move(listener->incoming.back());
  listener->incoming.clear();
  in->create_queue_pair(listener->queues(shared));
  if (!shared) listener->post_receives(in.get(), 0, 16);
  in->accept(answer);
  ASSERT_TRUE(until([&] {
    return dialler->count(EventKind::Established) > established &&
           listener->count(EventKind::Established) > accepted;
  }));
}

std::vector<ibv_wc> TwoSides::completions(Side& side, std::size_t count) {
  std::vector<ibv_wc> all;
  const TimePoint end = monotonic_now() + std::chrono::seconds(10);
  while (all.size() < count && monotonic_now() < end) {
    std::array<ibv_wc, 16> some{};
    const int n = ibv_poll_cq(side.completions->raw(), static_cast<int>(some.size()), some.data());
    EXPECT_GE(n, 0);
    for (int i = 0; i < n; ++i) {
      EXPECT_EQ(some.at(static_cast<std::size_t>(i)).status, IBV_WC_SUCCESS);
      all.push_back(some.at(static_cast<std::size_t>(i)));
    }
  }
  EXPECT_EQ(all.size(), count);
  return all;
}

std::vector<std::byte> bytes(std::size_t size, unsigned seed) {
  std::minstd_rand random(seed);
  std::vector<std::byte> all(size);
  std::ranges::generate(all, [&] { return static_cast<std::byte>(random() >> 8); });
  return all;
}

bool readable(int fd, std::chrono::milliseconds limit) {
  pollfd p{fd, POLLIN, 0};
  return ::poll(&p, 1, static_cast<int>(limit.count())) == 1;
}

std::string rdma_resources() {
  // Without the devices' indices, which change when they come back.
  return output_of("rdma resource show | sed 's/^[0-9]*: //; s/ctx [0-9]*//' | sort");
}

std::size_t open_descriptors() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

}  // namespace ipoverbs::verbs::test
