#include "bench/bounds/options.h"

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>

#include <boost/program_options.hpp>
#include <fmt/format.h>

#include "core/error.h"

namespace ipoverbs::bounds {

namespace {

namespace po = boost::program_options;
using Words = std::vector<std::string>;

po::options_description describe(std::size_t sides) {
  po::options_description text("options");
  auto add = text.add_options();
  add("help", "this text");
  add("netns", po::value<Words>()->composing(), "network namespace of an interface, by name");
  add("address", po::value<Words>()->composing(), "its address and prefix length");
  add("mtu", po::value<std::uint32_t>()->default_value(1500), "MTU of the interfaces, bytes");
  add("superpackets", po::value<std::string>()->default_value("on"),
      "on: super-packets and partial checksums pass; off: whole packets of the MTU alone");
  add("tun", po::value<std::string>()->default_value("ipov0"), "name of the interfaces");
  if (sides == 1) {
    add("listen", po::value<std::string>(), "UNIX socket to wait at for the other process");
    add("connect", po::value<std::string>(), "UNIX socket where the other process waits");
  }
  return text;
}

Words words(const po::variables_map& values, const char* name, std::size_t wanted) {
  const Words found = values.count(name) != 0 ? values[name].as<Words>() : Words{};
  if (found.size() != wanted) {
    throw UsageError(fmt::format("--{}: give it {} times, not {}", name, wanted, found.size()));
  }
  return found;
}

std::vector<tun::Config> sides_of(const po::variables_map& values, std::size_t sides) {
  const Words namespaces = words(values, "netns", sides);
  const Words addresses = words(values, "address", sides);
  std::vector<tun::Config> configs;
  for (std::size_t i = 0; i < sides; ++i) {
    const auto address = Prefix::parse(addresses[i]);
    if (!address) throw UsageError(fmt::format("--address {}: no address", addresses[i]));
    tun::Config config;
    config.name = values["tun"].as<std::string>();
    config.mtu = IpMtu{values["mtu"].as<std::uint32_t>()};
    config.netns = namespaces[i];
    config.addresses = {*address};
    configs.push_back(config);
  }
  return configs;
}

std::string text_of(const po::variables_map& values, const char* name) {
  return values.count(name) != 0 ? values[name].as<std::string>() : std::string();
}

bool is_on(const std::string& value) {
  if (value != "on" && value != "off") {
    throw UsageError(fmt::format("--superpackets {}: on or off", value));
  }
  return value == "on";
}

}  // namespace

Options parse_options(int argc, char** argv, std::size_t sides) {
  const po::options_description known = describe(sides);
  po::variables_map values;
  try {
    po::store(po::parse_command_line(argc, argv, known), values);
  } catch (const po::error& error) {
    throw UsageError(error.what());
  }
  if (values.count("help") != 0) {
    std::cout << known;
    std::exit(0);
  }
  Options options;
  options.sides = sides_of(values, sides);
  options.superpackets = is_on(values["superpackets"].as<std::string>());
  options.listen = text_of(values, "listen");
  options.connect = text_of(values, "connect");
  if (sides == 1 && options.listen.empty() == options.connect.empty()) {
    throw UsageError("either --listen or --connect");
  }
  return options;
}

int exit_status(const char* program, void (*run)(int, char**), int argc, char** argv) {
  try {
    run(argc, argv);
    return 0;
  } catch (const UsageError& error) {
    std::cerr << program << ": " << error.what() << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << program << ": " << error.what() << '\n';
    return 1;
  }
}

}  // namespace ipoverbs::bounds
