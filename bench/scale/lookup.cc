// bench_lookup PEERS...: what one route look-up costs with so many peers.
//
// Each peer has one IPv4 and one IPv6 address. Addresses are looked up in an order that no branch
// predictor learns; the figure is the median over batches of the mean of a batch. One line for each
// number: PEERS IPV4-NS IPV6-NS.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/clock.h"
#include "core/ip.h"
#include "transport/route_table.h"

namespace ipoverbs::bench {
namespace {

using transport::PeerOptions;
using transport::RouteTable;

constexpr std::size_t kBatches = 51;
constexpr std::size_t kLookUps = 20000;

struct Families {
  std::vector<IpAddress> v4, v6;
};

Families addresses(unsigned peers) {
  Families all;
  for (unsigned i = 0; i < peers; ++i) {
    all.v4.push_back(IpAddress::parse(fmt::format("10.99.{}.{}", i / 250, i % 250 + 1)).value());
    all.v6.push_back(IpAddress::parse(fmt::format("fd99::{:x}", i + 1)).value());
  }
  return all;
}

RouteTable table_of(const Families& all) {
  std::vector<PeerOptions> peers(all.v4.size());
  for (std::size_t i = 0; i < peers.size(); ++i) {
    peers[i].prefixes = {Prefix::parse(fmt::format("{}/32", all.v4[i].to_string())).value(),
                         Prefix::parse(fmt::format("{}/128", all.v6[i].to_string())).value()};
  }
  return RouteTable(peers, {});
}

double ns_per_look_up(const RouteTable& table, const std::vector<IpAddress>& known) {
  std::mt19937 random(1);
  std::vector<IpAddress> wanted;
  for (std::size_t i = 0; i < kLookUps; ++i) wanted.push_back(known[random() % known.size()]);
  std::array<double, kBatches> batches{};
  std::uint64_t found = 0;
  for (double& batch : batches) {
    const TimePoint start = monotonic_now();
    for (const IpAddress& address : wanted) found += table.lookup(address).index() + 1U;
    batch = std::chrono::duration<double, std::nano>(monotonic_now() - start).count() / kLookUps;
  }
  if (found == 0) fmt::print(stderr, "nothing was found\n");  // the look-ups have a use
  std::ranges::nth_element(batches, batches.begin() + kBatches / 2);
  return batches[kBatches / 2];
}

}  // namespace
}  // namespace ipoverbs::bench

int main(int argc, char** argv) {
  using namespace ipoverbs::bench;
  for (int i = 1; i < argc; ++i) {
    const unsigned peers = static_cast<unsigned>(std::strtoul(argv[i], nullptr, 10));
    if (peers == 0 || peers > 60000) {
      fmt::print(stderr, "bench_lookup: '{}' is not a number from 1 to 60000\n", argv[i]);
      return 2;
    }
    const Families all = addresses(peers);
    const auto table = table_of(all);
    fmt::print("{} {:.2f} {:.2f}\n", peers, ns_per_look_up(table, all.v4),
               ns_per_look_up(table, all.v6));
  }
}
