// /sys/class/infiniband from folders that look like it.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "verbs/rdma/host.h"

namespace ipoverbs::verbs {
namespace {

namespace fs = std::filesystem;

class KernelDevices : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "sysfs.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    sysfs = name;
  }
  void TearDown() override { fs::remove_all(sysfs); }
  void write(const fs::path& path, const std::string& line) {
    fs::create_directories((sysfs / path).parent_path());
    std::ofstream(sysfs / path) << line << '\n';
  }
  fs::path sysfs;
};

TEST_F(KernelDevices, AreNoneWithoutRdma) { EXPECT_TRUE(read_kernel_devices(sysfs).empty()); }

TEST_F(KernelDevices, ReadsSoftRoce) {
  const fs::path device = "class/infiniband/rxe0";
  write(device / "node_type", "1: CA");
  write("class/infiniband_verbs/uverbs3/ibdev", "rxe0");
  const fs::path port = device / "ports/1";
  write(port / "state", "4: ACTIVE");
  write(port / "link_layer", "Ethernet");
  write(port / "gids/0", "fe80:0000:0000:0000:0011:22ff:fe33:4455");
  write(port / "gids/1", "0000:0000:0000:0000:0000:ffff:c000:0201");
  write(port / "gids/2", "0000:0000:0000:0000:0000:0000:0000:0000");
  write(port / "gids/10", "2001:0db8:0000:0000:0000:0000:0000:0001");
  for (const char* index : {"0", "1", "10"}) {
    write(port / "gid_attrs/types" / index, "RoCE v2");
    write(port / "gid_attrs/ndevs" / index, "eth0");
  }
  const auto devices = read_kernel_devices(sysfs);
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_EQ(devices[0].name, "rxe0");
  EXPECT_EQ(devices[0].uverbs, "uverbs3");
  EXPECT_FALSE(devices[0].iwarp);
  ASSERT_EQ(devices[0].ports.size(), 1U);
  const KernelPort& read = devices[0].ports[0];
  EXPECT_EQ(read.state, "ACTIVE");
  EXPECT_EQ(read.netdev, "eth0");
  // Without the empty one, in the order of numbers.
  ASSERT_EQ(read.gids.size(), 3U);
  EXPECT_EQ(read.gids[1].gid.to_string(), "::ffff:192.0.2.1");
  EXPECT_EQ(read.gids[1].type, "RoCE v2");
  EXPECT_EQ(read.gids[2].index, 10U);
}

TEST_F(KernelDevices, ReadsInfiniBandWithTwoPorts) {
  const fs::path device = "class/infiniband/mlx4_0";
  write(device / "node_type", "1: CA");
  for (const char* port : {"1", "2"}) {
    write(device / "ports" / port / "state", "1: DOWN");
    write(device / "ports" / port / "link_layer", "InfiniBand");
    write(device / "ports" / port / "gids/0",
          "fe80:0000:0000:0000:0002:c903:0001:000" + std::string(port));
  }
  write(device / "device/net/ib0/dev_port", "0");
  write(device / "device/net/ib1/dev_port", "1");
  const auto devices = read_kernel_devices(sysfs);
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_EQ(devices[0].uverbs, "");
  ASSERT_EQ(devices[0].ports.size(), 2U);
  EXPECT_EQ(devices[0].ports[0].netdev, "ib0");
  EXPECT_EQ(devices[0].ports[1].netdev, "ib1");
  EXPECT_EQ(devices[0].ports[1].state, "DOWN");
  EXPECT_EQ(devices[0].ports[1].gids.at(0).type, "");
}

TEST_F(KernelDevices, ReadsIwarp) {
  write("class/infiniband/siw0/node_type", "4: RNIC");
  write("class/infiniband/siw0/ports/1/state", "4: ACTIVE");
  EXPECT_TRUE(read_kernel_devices(sysfs).at(0).iwarp);
}

}  // namespace
}  // namespace ipoverbs::verbs
