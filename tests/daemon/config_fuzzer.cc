// Any bytes as a configuration file: options, or one line that says what is wrong.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/error.h"
#include "daemon/up_options.h"
#include "tests/daemon/interfaces.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void check_message(std::string_view message) {
  for (const char c : message) require(c >= ' ' && c <= '~');
  require(message.size() < 1000);
  require(message.starts_with("n.conf:") || message.starts_with("--underlay is missing"));
}

void check_options(const ipoverbs::daemon::UpOptions& options) {
  require(options.tun.mtu.value() >= 68 && options.tun.mtu.value() <= 65520);
  require(options.transport.peers.size() <= ipoverbs::daemon::kMaxPeers);
  for (const auto& peer : options.transport.peers) {
    require(peer.underlay.endpoint.port != 0 && !peer.prefixes.empty());
    for (const auto& prefix : peer.prefixes) require(!prefix.has_host_bits());
  }
  ipoverbs::tun::validate(options.tun);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ipoverbs::daemon;
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(data[i]);
  std::vector<Setting> settings;
  try {
    settings = up_grammar().parse_config(text, "n.conf");
    const UpCommand command = build_up(settings, {}, index_of_eth0);
    check_options(command.options);
  } catch (const ipoverbs::UsageError& error) {
    check_message(error.what());
  }
  return 0;
}
