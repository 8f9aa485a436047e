// An interface that goes down loses its routes and its IPv6 addresses, keeps its IPv4 addresses,
// and a lost carrier takes nothing. Relied on by Interface::process_events(), which puts back what
// is missing, and by Interface::set_carrier().
#include <algorithm>

#include "tests/platform/platform.h"

namespace ipoverbs::tun {

void tun_down_loses_addresses(Assumption& assumption) {
  const Fd queue = open_queue("t0", QueueMode::Single, Attach::Create);
  RouteSocket socket;
  const int index = socket.find_link("t0").value().index;
  const int quiet = socket.change_link(index, {.ipv6_address_generation = kNoAddressGeneration});
  assumption.equal("no addresses of the kernel's own", quiet, 0);
  set_link_up("t0", true);
  assumption.equal("give an IPv4 address", socket.add_address(index, prefix("10.77.0.1/24")), 0);
  assumption.equal("give an IPv6 address", socket.add_address(index, prefix("fd77::1/64")), 0);
  assumption.equal("give a route", socket.add_route(index, prefix("10.78.0.0/16")), 0);
  const std::size_t routes = socket.routes(index).size();

  set_carrier(queue.get(), false);
  assumption.equal("addresses without carrier", socket.addresses(index).size(), 2U);
  assumption.equal("routes without carrier", socket.routes(index).size(), routes);
  set_carrier(queue.get(), true);

  set_link_up("t0", false);
  const auto left = socket.addresses(index);
  assumption.equal("addresses when down", left.size(), 1U);
  assumption.equal("of IPv4", std::ranges::count(left, prefix("10.77.0.1/24")), 1);
  assumption.equal("routes when down", socket.routes(index).size(), 0U);
  set_link_up("t0", true);
  assumption.equal("addresses when up again", socket.addresses(index).size(), 1U);
}

}  // namespace ipoverbs::tun
