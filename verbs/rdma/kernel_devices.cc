// Reading /sys/class/infiniband.
#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "verbs/rdma/host.h"

namespace ipoverbs::verbs {

namespace {
namespace fs = std::filesystem;

// The first line; "" if the file is missing or the kernel refuses to read it, as it does for the
// type of an empty GID.
std::string line_of(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::optional<unsigned> number_of(std::string_view text) {
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;  // a folder that is not there is empty
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

std::vector<unsigned> numbers_in(const fs::path& folder) {
  std::vector<unsigned> numbers;
  for (const std::string& name : names_in(folder)) {
    if (const auto number = number_of(name)) numbers.push_back(*number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

std::vector<KernelGid> read_gids(const fs::path& port) {
  std::vector<KernelGid> gids;
  for (const unsigned index : numbers_in(port / "gids")) {
    const std::string name = std::to_string(index);
    const auto gid = IpAddress::parse(line_of(port / "gids" / name));
    if (!gid || gid->is_unspecified()) continue;
    gids.push_back({index, *gid, line_of(port / "gid_attrs/types" / name),
                    line_of(port / "gid_attrs/ndevs" / name)});
  }
  return gids;
}

// InfiniBand's GIDs name no netdev: the IPoIB interface stands beside the device, and its dev_port
// counts ports from 0.
std::string ipoib_netdev(const fs::path& device, unsigned port) {
  for (const std::string& name : names_in(device / "device/net")) {
    if (number_of(line_of(device / "device/net" / name / "dev_port")) == port - 1) return name;
  }
  return "";
}

KernelPort read_port(const fs::path& device, unsigned number) {
  const fs::path folder = device / "ports" / std::to_string(number);
  KernelPort port;
  port.number = static_cast<std::uint8_t>(number);
  const std::string state = line_of(folder / "state");  // "4: ACTIVE"
  const std::size_t colon = state.find(": ");
  port.state = colon == std::string::npos ? state : state.substr(colon + 2);
  port.link_layer = line_of(folder / "link_layer");
  port.gids = read_gids(folder);
  const auto named =
      std::ranges::find_if(port.gids, [](const auto& g) { return !g.netdev.empty(); });
  port.netdev = named != port.gids.end() ? named->netdev : ipoib_netdev(device, number);
  return port;
}
}  // namespace

std::vector<KernelDevice> read_kernel_devices(const fs::path& sysfs) {
  const fs::path folder = sysfs / "class/infiniband";
  std::vector<KernelDevice> devices;
  for (const std::string& name : names_in(folder)) {
    KernelDevice device;
    device.name = name;
    // "1: CA", "4: RNIC" (enum rdma_node_type).
    device.iwarp = line_of(folder / name / "node_type").starts_with("4");
    for (const unsigned port : numbers_in(folder / name / "ports")) {
      device.ports.push_back(read_port(folder / name, port));
    }
    for (const std::string& uverbs : names_in(sysfs / "class/infiniband_verbs")) {
      if (line_of(sysfs / "class/infiniband_verbs" / uverbs / "ibdev") == name) {
        device.uverbs = uverbs;
      }
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace ipoverbs::verbs
