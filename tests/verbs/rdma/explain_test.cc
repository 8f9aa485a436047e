#include "verbs/rdma/explain.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace ipoverbs::verbs {
namespace {

IpAddress ip(const char* text) { return *IpAddress::parse(text); }

KernelDevice roce(const std::string& name, const std::string& netdev, const char* gid) {
  KernelDevice device;
  device.name = name;
  device.uverbs = "uverbs0";
  device.ports.push_back(
      {.number = 1,
       .state = "ACTIVE",
       .link_layer = "Ethernet",
       .netdev = netdev,
       .gids = {{0, ip("fe80::1"), "RoCE v2", netdev}, {1, ip(gid), "RoCE v2", netdev}}});
  return device;
}

// eth0 with rxe0, eth1 with nothing.
Host good_host() {
  Host host;
  host.addresses = {{"lo", ip("127.0.0.1"), 1},
                    {"eth0", ip("192.0.2.1"), 2},
                    {"eth0", ip("fe80::1"), 2},
                    {"eth1", ip("198.51.100.1"), 3}};
  host.rdma_in_kernel = true;
  host.devices = {roce("rxe0", "eth0", "::ffff:192.0.2.1")};
  host.drivable = {"rxe0"};
  return host;
}

DeviceRequest request(const char* address) {
  DeviceRequest r;
  r.underlay.address = ip(address);
  return r;
}

// One line, with each of the words.
void expect_line(const std::string& line, const std::vector<std::string>& words) {
  EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  for (const std::string& word : words) {
    EXPECT_NE(line.find(word), std::string::npos) << "no '" << word << "' in: " << line;
  }
}

TEST(Explain, HasNothingAgainstAGoodHost) {
  EXPECT_EQ(explain_refusal(request("192.0.2.1"), good_host()), "");
}

TEST(Explain, AddressNotOnThisHost) {
  expect_line(explain_refusal(request("203.0.113.9"), good_host()),
              {"203.0.113.9 is not an address of this host", "192.0.2.1 (rxe0)"});
}

TEST(Explain, AddressNotOnAnRdmaDevice) {
  expect_line(explain_refusal(request("198.51.100.1"), good_host()),
              {"interface eth1", "modprobe rdma_rxe", "rdma link add rxe0 type rxe netdev eth1",
               "192.0.2.1 (rxe0)"});
}

TEST(Explain, LinkLocalAddressNeedsItsInterface) {
  expect_line(explain_refusal(request("fe80::1"), good_host()), {"link-local", "fe80::1%"});
  DeviceRequest with_scope = request("fe80::1");
  with_scope.underlay.scope = 2;
  EXPECT_EQ(explain_refusal(with_scope, good_host()), "");
  with_scope.underlay.scope = 3;
  expect_line(explain_refusal(with_scope, good_host()), {"not an address of this host"});
}

TEST(Explain, NoRdmaAtAll) {
  Host host = good_host();
  host.devices.clear();
  host.drivable.clear();
  expect_line(explain_refusal(request("192.0.2.1"), host), {"no RDMA device", "netdev eth0"});
  host.rdma_in_kernel = false;
  expect_line(explain_refusal(request("192.0.2.1"), host), {"ib_core", "modprobe rdma_rxe"});
}

TEST(Explain, ConnectionManagerMissing) {
  Host host = good_host();
  host.connection_manager_error = ENOENT;
  expect_line(explain_refusal(request("192.0.2.1"), host),
              {"no /dev/infiniband/rdma_cm", "modprobe rdma_ucm"});
  host.connection_manager_error = EACCES;
  expect_line(explain_refusal(request("192.0.2.1"), host),
              {"/dev/infiniband/rdma_cm", "Permission denied"});
}

TEST(Explain, DeviceFileMissing) {
  Host host = good_host();
  host.devices[0].uverbs_error = ENOENT;
  expect_line(explain_refusal(request("192.0.2.1"), host),
              {"no /dev/infiniband/uverbs0", "modprobe ib_uverbs"});
  host.devices[0].uverbs = "";
  expect_line(explain_refusal(request("192.0.2.1"), host), {"rxe0", "modprobe ib_uverbs"});
}

TEST(Explain, ProviderLibraryMissing) {
  Host host = good_host();
  host.drivable.clear();
  expect_line(explain_refusal(request("192.0.2.1"), host), {"rxe0", "ibverbs-providers"});
}

TEST(Explain, PortDown) {
  Host host = good_host();
  host.devices[0].ports[0].state = "DOWN";
  expect_line(explain_refusal(request("192.0.2.1"), host), {"port 1 of rxe0 is DOWN"});
}

TEST(Explain, GidNeedsInfiniBand) {
  DeviceRequest by_gid = request("fe80::1");
  by_gid.by_gid = true;
  expect_line(explain_refusal(by_gid, good_host()), {"rxe0", "not InfiniBand", "IP address"});
  by_gid.underlay.address = ip("fe80::2");
  expect_line(explain_refusal(by_gid, good_host()), {"fe80::2", "which has fe80::1 (rxe0)"});
  Host host = good_host();
  host.devices[0].ports[0].link_layer = "InfiniBand";
  by_gid.underlay.address = ip("fe80::1");
  EXPECT_EQ(explain_refusal(by_gid, host), "");
}

TEST(Explain, AddressOnAnotherDevice) {
  DeviceRequest named = request("192.0.2.1");
  EXPECT_EQ(explain_other_device(named, good_host()), "");
  named.device = "rxe0";
  EXPECT_EQ(explain_other_device(named, good_host()), "");
  named.device = "mlx5_0";
  expect_line(explain_other_device(named, good_host()), {"mlx5_0", "192.0.2.1", "rxe0"});
}

TEST(WhoServes, PrefersTheDeviceThatHasTheGid) {
  Host host = good_host();
  // A second device on the same interface, whose GID table does not have the address.
  host.devices.insert(host.devices.begin(), roce("other", "eth0", "::ffff:192.0.2.77"));
  EXPECT_EQ(who_serves(host, host.addresses[1]).device->name, "rxe0");
  EXPECT_EQ(who_serves(host, host.addresses[3]).device, nullptr);
}

}  // namespace
}  // namespace ipoverbs::verbs
