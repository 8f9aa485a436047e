// The rdma-core device against the kernel's rdma_rxe: opening it, what it can do, and losing it.
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/softroce/verbs_fixture.h"

namespace ipoverbs::verbs::test {
namespace {

using namespace std::chrono_literals;

class Opening : public LeavesNothing {};
class Listing : public LeavesNothing {};

// The line with which opening is refused; "" if it is not.
std::string refusal(const std::string& address, const std::string& device = "") {
  const auto logger = make_null_logger();
  DeviceRequest request;
  request.underlay.address = *IpAddress::parse(address);
  if (!device.empty()) request.device = device;
  try {
    const auto opened = open_rdma_device(request, *logger);
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

bool has(const std::string& all, const std::string& part) {
  return all.find(part) != std::string::npos;
}

TEST_F(Opening, ProbesTheDevice) {
  const Side side("10.77.0.1");
  const Capabilities& c = side.device->capabilities();
  EXPECT_EQ(c.device, "rxe0");
  EXPECT_EQ(c.provider, "rdma-core");
  EXPECT_EQ(c.link, "RoCE");
  EXPECT_EQ(c.port, 1);
  EXPECT_EQ(c.active_mtu, PathMtu(4096));
  EXPECT_TRUE(c.has_srq());
  EXPECT_GE(c.max_qp_wr, 1024U);
  EXPECT_GE(c.max_cqe, 1024U);
  EXPECT_GE(c.max_send_sge, 16U);
  EXPECT_GE(c.max_message, kMessage);
}

TEST_F(Opening, TakesTheNamedDevice) {
  EXPECT_EQ(refusal("10.77.0.1", "rxe0"), "");
  const std::string line = refusal("10.77.0.1", "rxe1");
  EXPECT_TRUE(has(line, "rxe1") && has(line, "10.77.0.1") && has(line, "rxe0")) << line;
}

TEST_F(Opening, RefusesAnAddressThatIsElsewhere) {
  const std::string line = refusal("203.0.113.5");
  EXPECT_TRUE(has(line, "203.0.113.5 is not an address of this host")) << line;
  EXPECT_TRUE(has(line, "10.77.0.1 (rxe0)")) << line;
}

TEST_F(Opening, RefusesAnAddressWithoutRdma) {
  run("ip link add plain type dummy && ip addr add 198.51.100.1/24 dev plain && ip link set plain "
      "up");
  const std::string line = refusal("198.51.100.1");
  EXPECT_TRUE(has(line, "interface plain")) << line;
  EXPECT_TRUE(has(line, "rdma link add rxe0 type rxe netdev plain")) << line;
  const std::string loopback = refusal("127.0.0.1");
  EXPECT_TRUE(has(loopback, "interface lo")) << loopback;
  run("ip link delete plain");
}

TEST_F(Opening, RefusesALinkLocalAddressWithoutInterface) {
  const std::string address = output_of(
      "ip -6 -o addr show dev v0 scope link | awk '{print $4}' | cut -d/ -f1 | tr -d '\\n'");
  ASSERT_NE(address, "");
  EXPECT_TRUE(has(refusal(address), address + "%")) << refusal(address);
}

// This program, as a command that a shell can run.
const std::string kSelf = "/proc/" + std::to_string(::getpid()) + "/exe";

// What this program prints in a mount namespace of its own, from which `hide` hid something.
std::string output_without(const std::string& hide, const std::string& what) {
  return output_of("unshare -m sh -c '" + hide + " && exec " + kSelf + " " + what + "'");
}

constexpr const char* kHideProviders =
    "mount -t tmpfs none /etc/libibverbs.d && "
    "mount -t tmpfs none /usr/lib/x86_64-linux-gnu/libibverbs";

TEST_F(Opening, NamesTheModuleOfTheConnectionManager) {
  const std::string line =
      output_without("mount -t tmpfs none /dev/infiniband", "--refusal 10.77.0.1");
  EXPECT_TRUE(has(line, "/dev/infiniband/rdma_cm") && has(line, "rdma_ucm")) << line;
}

TEST_F(Opening, NamesTheMissingVerbsFile) {
  const std::string line = output_without(
      "mkdir -p /run/only && cp -a /dev/infiniband/rdma_cm /run/only && "
      "mount --bind /run/only /dev/infiniband",
      "--refusal 10.77.0.1");
  EXPECT_TRUE(has(line, "no /dev/infiniband/uverbs0")) << line;
}

TEST_F(Opening, NamesThePackageOfTheProviders) {
  const std::string line = output_without(kHideProviders, "--refusal 10.77.0.1");
  EXPECT_TRUE(has(line, "rxe0") && has(line, "ibverbs-providers")) << line;
}

// capset(2): locked memory counts only for who lacks CAP_IPC_LOCK.
bool drop_ipc_lock() {
  __user_cap_header_struct header{};
  header.version = _LINUX_CAPABILITY_VERSION_3;
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
  if (::syscall(SYS_capget, &header, data.data()) != 0) return false;
  data[0].effective &= ~(1U << CAP_IPC_LOCK);
  return ::syscall(SYS_capset, &header, data.data()) == 0;
}

// In a child: a registration that fails makes rdma_rxe of Linux 6.1 keep the protection domain for
// as long as the process lives.
std::string locked_memory_refusal() {
  const Side side("10.77.0.1");
  const MappedMemory memory(std::size_t{4} << 20);
  const rlimit small{64 << 10, RLIM_INFINITY};
  if (::setrlimit(RLIMIT_MEMLOCK, &small) != 0) return "setrlimit failed";
  if (!drop_ipc_lock()) return "capset failed";
  try {
    const auto region = side.device->register_memory(memory.bytes());
    return "registered";
  } catch (const UsageError& error) {
    return error.what();
  }
}

TEST_F(Opening, NamesTheLimitOnLockedMemory) {
  const std::string line = output_of(kSelf + " --locked-memory");
  EXPECT_TRUE(has(line, "64 KiB") && has(line, "4096 KiB") && has(line, "ulimit -l")) << line;
}

TEST_F(Opening, IsNotLimitedWithIpcLock) {
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &old), 0);
  const rlimit small{64 << 10, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &small), 0);
  EXPECT_NO_THROW(Side("10.77.0.1"));
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &old), 0);
}

TEST_F(Opening, RefusesAGidOfRoce) {
  const auto logger = make_null_logger();
  DeviceRequest request;
  request.underlay.address = *IpAddress::parse("::ffff:10.77.0.1");
  request.by_gid = true;
  std::string line;
  try {
    const auto opened = open_rdma_device(request, *logger);
  } catch (const std::exception& error) {
    line = error.what();
  }
  EXPECT_TRUE(has(line, "rxe0") && has(line, "not InfiniBand")) << line;
}

TEST_F(Listing, DescribesEveryPort) {
  const DeviceList list = list_rdma_devices();
  EXPECT_EQ(list.why_empty, "");
  ASSERT_EQ(list.ports.size(), 2U);
  const PortDescription& port = list.ports[0];
  EXPECT_EQ(port.device, "rxe0");
  EXPECT_EQ(port.link, "RoCE");
  EXPECT_EQ(port.state, "ACTIVE");
  EXPECT_EQ(port.netdev, "v0");
  EXPECT_EQ(port.capabilities.active_mtu, PathMtu(4096));
  EXPECT_NE(std::ranges::find(port.addresses, *IpAddress::parse("10.77.0.1")),
            port.addresses.end());
  EXPECT_EQ(std::ranges::find(port.addresses, *IpAddress::parse("10.77.0.2")),
            port.addresses.end());
  const auto mapped = std::ranges::find(port.gids, "::ffff:10.77.0.1", &PortDescription::Gid::gid);
  ASSERT_NE(mapped, port.gids.end());
  EXPECT_EQ(mapped->type, "RoCE v2");
  EXPECT_TRUE(port.usable) << port.why_not;
}

TEST_F(Listing, SaysWhatIsMissing) {
  const std::string all = output_without(kHideProviders, "--list");
  EXPECT_TRUE(has(all, "rxe0 no: ") && has(all, "ibverbs-providers")) << all;
  const std::string none = output_without("mount -t tmpfs none /sys", "--list");
  EXPECT_TRUE(has(none, "empty: ") && has(none, "rdma_rxe")) << none;
}

class Losing : public TwoSides {
 protected:
  // Deletes the device under `side` while it is in use; the command ends when everything is let go.
  void take_away(std::unique_ptr<Side>& side, const std::string& name) {
    auto deleted = std::async(std::launch::async,
                              [&] { return std::system(("rdma link delete " + name).c_str()); });
    EXPECT_TRUE(until([&] { return side->saw(EventKind::DeviceRemoved); }));
    EXPECT_EQ(side->count(EventKind::DeviceRemoved), 1);
    (side == dialler ? out : in).reset();
    side.reset();
    if (deleted.wait_for(5s) != std::future_status::ready) {
      // The future's destructor would wait for it.
      std::fprintf(stderr, "rdma link delete %s blocks\n", name.c_str());
      std::_Exit(1);
    }
    EXPECT_EQ(deleted.get(), 0);
  }
};

TEST_F(Losing, OneDeviceLeavesTheOther) {
  ASSERT_NO_FATAL_FAILURE(connect());
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 5; ++i) {
    // Under load: no receive waits for these, so that they are tried again and again.
    dialler->post_sends(*out, 16, 12);
    listener->post_sends(*in, 16, 12);
    take_away(dialler, "rxe0");
    EXPECT_TRUE(until([&] { return listener->saw(EventKind::Disconnected); }));
    EXPECT_TRUE(has(refusal("10.77.0.1"), "interface v0"));
    run("rdma link add rxe0 type rxe netdev v0");
    dialler = std::make_unique<Side>("10.77.0.1");
    listener->events.clear();
    in.reset();
    ASSERT_NO_FATAL_FAILURE(connect());
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(Losing, TheLastDeviceOfTheMachine) {
  ASSERT_NO_FATAL_FAILURE(connect());
  const std::size_t before = open_descriptors();
  take_away(dialler, "rxe0");
  take_away(listener, "rxe1");
  EXPECT_TRUE(has(refusal("10.77.0.1"), "no RDMA device"));
  EXPECT_NE(list_rdma_devices().why_empty, "");
  run("rdma link add rxe0 type rxe netdev v0 && rdma link add rxe1 type rxe netdev v1");
  open();
  ASSERT_NO_FATAL_FAILURE(connect());
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(Losing, PortGoesDownAndUp) {
  ASSERT_NO_FATAL_FAILURE(connect());
  run("ip link set v0 down");
  EXPECT_TRUE(until([&] { return dialler->saw(EventKind::PortDown); }));
  EXPECT_TRUE(has(refusal("10.77.0.1"), ""));
  run("ip link set v0 up");
  EXPECT_TRUE(until([&] { return dialler->saw(EventKind::PortActive); }));
  EXPECT_EQ(dialler->last(EventKind::PortActive).detail, "port 1 of rxe0");
  out.reset();
  in.reset();
  ASSERT_NO_FATAL_FAILURE(connect());
}

}  // namespace

// What the tests above run as another process, from which something was hidden.
int run_child(const std::string& what, const std::string& argument) {
  if (what == "--refusal" || what == "--locked-memory") {
    std::puts((what == "--refusal" ? refusal(argument) : locked_memory_refusal()).c_str());
    return 0;
  }
  const DeviceList list = list_rdma_devices();
  if (list.ports.empty()) std::printf("empty: %s\n", list.why_empty.c_str());
  for (const PortDescription& port : list.ports) {
    std::printf("%s %s: %s\n", port.device.c_str(), port.usable ? "yes" : "no",
                port.why_not.c_str());
  }
  return 0;
}

}  // namespace ipoverbs::verbs::test
