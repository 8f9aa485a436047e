#include "tun/interface.h"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "core/fd.h"
#include "tun/driver.h"
#include "tun/link_watch.h"
#include "tun/lock.h"
#include "tun/netlink.h"
#include "tun/netns.h"
#include "tun/probe.h"

namespace ipoverbs::tun {

namespace {

// Something that netlink refused: what was tried, as a phrase, and errno.
struct Refusal {
  std::string tried;
  int error = 0;
};

std::string describe(const Refusal& refusal) {
  return fmt::format("{}: {}", refusal.tried, std::generic_category().message(refusal.error));
}

[[noreturn]] void raise(const Refusal& refusal) {
  switch (refusal.error) {
    case EPERM:
      throw UsageError(fmt::format(
          "no permission to {}: that needs CAP_NET_ADMIN, unless somebody has done it beforehand",
          refusal.tried));
    case EEXIST:
      throw UsageError(
          fmt::format("cannot {}: the host has that already, elsewhere", refusal.tried));
    case EACCES:
    case EAFNOSUPPORT:
    case EOPNOTSUPP:
      throw UsageError(
          fmt::format("cannot {}: the address family is disabled there (see sysctl "
                      "net.ipv6.conf.*.disable_ipv6)",
                      refusal.tried));
    default:
      throw SystemError(refusal.error, refusal.tried);
  }
}

// What the kernel tells of `link`, which exists. Throws unless it is a TUN that nobody is attached
// to.
TunInfo require_idle_tun(const std::string& name, const LinkInfo& link, unsigned queues) {
  if (!link.tun || link.tun->tap) {
    throw UsageError(fmt::format(
        "the name {} is taken by an interface that is no TUN: choose another name", name));
  }
  // A TUN that is not persistent exists because somebody holds it. Of a persistent one with a
  // single queue the kernel does not tell, but refuses a second (EBUSY).
  if (link.tun->queues > 0 || !link.tun->persistent) {
    throw UsageError(fmt::format("interface {} is in use by another program", name));
  }
  if (queues > 1 && !link.tun->multi_queue) {
    throw UsageError(fmt::format(
        "the persistent TUN {} has a single queue, not {}: ask for one, or make it anew with "
        "'ip tuntap add {} mode tun multi_queue'",
        name, queues, name));
  }
  return *link.tun;
}

bool contains(const std::vector<Prefix>& prefixes, const Prefix& prefix) {
  return std::ranges::find(prefixes, prefix) != prefixes.end();
}

}  // namespace

class Interface::Impl {
 public:
  Impl(Config config, Logger& logger) : config_(std::move(config)), logger_(logger) {
    for (Prefix& route : config_.routes) route = route.network();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  Impl(Impl&&) = delete;
  Impl& operator=(Impl&&) = delete;
  ~Impl();

  void open();
  void configure();
  Offloads set_read_offloads(const Offloads& wanted);
  LinkState process_events();

  [[nodiscard]] const Config& config() const { return config_; }
  [[nodiscard]] Logger& logger() const { return logger_; }
  [[nodiscard]] int index() const { return index_; }
  [[nodiscard]] LinkState state() const { return state_; }
  [[nodiscard]] std::span<const int> descriptors() const { return descriptors_; }
  [[nodiscard]] std::uint32_t queue_length() const { return queue_length_; }
  [[nodiscard]] const ProbedOffloads& offloads() const { return offloads_; }
  [[nodiscard]] Statistics statistics() { return control_->link(index_).statistics; }
  [[nodiscard]] int event_fd() const { return watch_->fd(); }

 private:
  void attach();
  void change(const LinkChange& change, const std::string& tried);
  void configure_limits(const LinkInfo& now);
  std::vector<Refusal> install();
  void install_prefixes(const std::vector<Prefix>& wanted, const std::vector<Prefix>& present,
                        std::vector<Prefix>& added, const char* what,
                        int (RouteSocket::*add)(int, const Prefix&),
                        std::vector<Refusal>& refusals);
  void put_back();
  void restore(const LinkInfo& before);

  Config config_;
  Logger& logger_;
  Fd lock_;
  std::unique_ptr<RouteSocket> control_;
  std::unique_ptr<LinkWatch> watch_;
  std::optional<LinkInfo> before_;  // of a persistent TUN, as it was found
  std::vector<Fd> queues_;
  std::vector<int> descriptors_;  // of queues_
  int index_ = 0;
  std::uint32_t queue_length_ = 0;
  ProbedOffloads offloads_;
  LinkState state_ = LinkState::Down;
  std::vector<Prefix> added_addresses_;  // not there before
  std::vector<Prefix> added_routes_;
};

void Interface::Impl::open() {
  const NetworkNamespace where(config_.netns);
  where.run([this] {
    lock_ = lock_interface(config_.name);
    control_ = std::make_unique<RouteSocket>();
    watch_ = std::make_unique<LinkWatch>();
    attach();
  });
}

void Interface::Impl::attach() {
  const std::string& name = config_.name;
  const auto found = control_->find_link(name);
  const bool multi =
      found ? require_idle_tun(name, *found, config_.queues).multi_queue : config_.queues > 1;
  for (unsigned i = 0; i < config_.queues; ++i) {
    queues_.push_back(open_queue(name, multi ? QueueMode::Multi : QueueMode::Single,
                                 i == 0 && !found ? Attach::Create : Attach::Existing));
    descriptors_.push_back(queues_.back().get());
  }
  const auto made = control_->find_link(name);
  if (!made) throw SystemError(ENODEV, fmt::format("find interface {}", name));
  index_ = made->index;
  // Another program may have attached since we looked: a multi-queue TUN lets it.
  if (multi && made->tun && made->tun->queues != config_.queues) {
    throw UsageError(fmt::format("interface {} is in use by another program", name));
  }
  before_ = found;
}

void Interface::Impl::change(const LinkChange& change, const std::string& tried) {
  const int error = control_->change_link(index_, change);
  if (error != 0) raise({.tried = tried, .error = error});
}

// Changes only what differs, so that a persistent TUN that is right already needs no permission.
void Interface::Impl::configure_limits(const LinkInfo& now) {
  const std::string& name = config_.name;
  if (now.mtu != config_.mtu.value()) {
    change({.mtu = config_.mtu.value()},
           fmt::format("set the MTU of {} to {}", name, config_.mtu.value()));
  }
  if (config_.gso_max_size && now.gso_max_size != *config_.gso_max_size) {
    change({.gso_max_size = config_.gso_max_size},
           fmt::format("set gso_max_size of {} to {}", name, *config_.gso_max_size));
  }
  if (config_.gso_max_segments && now.gso_max_segments != *config_.gso_max_segments) {
    change({.gso_max_segments = config_.gso_max_segments},
           fmt::format("set gso_max_segs of {} to {}", name, *config_.gso_max_segments));
  }
  const std::uint32_t wanted = queue_packets(config_);
  queue_length_ = now.queue_length;
  if (now.queue_length == wanted) return;
  const int error = control_->change_link(index_, {.queue_length = wanted});
  if (error == 0) {
    queue_length_ = wanted;
  } else {
    logger_.warn("{}: the queue length stays {} packets instead of {}: {}", name, now.queue_length,
                 wanted, std::generic_category().message(error));
  }
}

void Interface::Impl::configure() {
  const LinkInfo now = control_->link(index_);
  configure_limits(now);
  // Of an interface that is up already, the kernel has made its address; without permission it
  // makes one.
  if (!now.up &&
      now.ipv6_address_generation.value_or(kNoAddressGeneration) != kNoAddressGeneration) {
    std::ignore = control_->change_link(index_, {.ipv6_address_generation = kNoAddressGeneration});
  }
  offloads_ = probe_offloads(descriptors_.front());
  set_read_offloads(offloads_.write);
  if (config_.up && !now.up) change({.up = true}, fmt::format("bring {} up", config_.name));
  if (config_.up || now.up) {
    if (const auto refusals = install(); !refusals.empty()) raise(refusals.front());
  }
  std::ignore = watch_->read(index_);  // the echo of our own changes
  state_ = control_->link(index_).up ? LinkState::Up : LinkState::Down;
}

Offloads Interface::Impl::set_read_offloads(const Offloads& wanted) {
  const Offloads possible = intersect(wanted, offloads_.read);
  if (const int error = set_offloads(descriptors_.front(), possible); error != 0) {
    throw SystemError(error, fmt::format("set the offloads of {} (TUNSETOFFLOAD)", config_.name));
  }
  return possible;
}

// Adds those addresses and routes that are not there. Addresses first: the kernel takes a route's
// source address from them.
std::vector<Refusal> Interface::Impl::install() {
  std::vector<Refusal> refusals;
  install_prefixes(config_.addresses, control_->addresses(index_), added_addresses_, "address",
                   &RouteSocket::add_address, refusals);
  install_prefixes(config_.routes, control_->routes(index_), added_routes_, "route",
                   &RouteSocket::add_route, refusals);
  return refusals;
}

void Interface::Impl::install_prefixes(const std::vector<Prefix>& wanted,
                                       const std::vector<Prefix>& present,
                                       std::vector<Prefix>& added, const char* what,
                                       int (RouteSocket::*add)(int, const Prefix&),
                                       std::vector<Refusal>& refusals) {
  for (const Prefix& prefix : wanted) {
    if (contains(present, prefix)) continue;
    const int error = (*control_.*add)(index_, prefix);
    if (error != 0) {
      refusals.push_back(
          {.tried = fmt::format("give {} the {} {}", config_.name, what, prefix.to_string()),
           .error = error});
    } else if (!contains(added, prefix)) {
      added.push_back(prefix);
    }
  }
}

LinkState Interface::Impl::process_events() {
  LinkWatch::News news = watch_->read(index_);
  if (state_ == LinkState::Removed) return state_;
  if (news.lost) {
    const auto link = control_->find_link(config_.name);
    news.removed = !link || link->index != index_;
    news.up = link && link->up;
    news.went_down = true;
  }
  if (news.removed) {
    logger_.error("{} was removed by somebody else", config_.name);
    state_ = LinkState::Removed;
  } else if (news.up) {
    const bool was_up = state_ == LinkState::Up;
    if (was_up && news.went_down) logger_.info("{} went down", config_.name);
    state_ = *news.up ? LinkState::Up : LinkState::Down;
    if (*news.up && (!was_up || news.went_down)) put_back();
  }
  return state_;
}

void Interface::Impl::put_back() {
  logger_.info("{} is up: its addresses and routes are put back", config_.name);
  for (const Refusal& refusal : install()) {
    // Down once more already: there will be another time.
    if (refusal.error != ENETDOWN) logger_.warn("cannot {}", describe(refusal));
  }
}

// Leaves a persistent TUN as it was found.
void Interface::Impl::restore(const LinkInfo& before) {
  for (const Prefix& route : added_routes_) {
    std::ignore = control_->remove_route(index_, route);  // may be gone
  }
  for (const Prefix& address : added_addresses_) {
    std::ignore = control_->remove_address(index_, address);
  }
  const LinkInfo now = control_->link(index_);
  LinkChange change;
  const auto differs = [](auto& field, auto was, auto is) {
    if (was != is) field = was;
    return was != is;
  };
  bool any = differs(change.up, before.up, now.up);
  any |= differs(change.mtu, before.mtu, now.mtu);
  any |= differs(change.queue_length, before.queue_length, now.queue_length);
  any |= differs(change.gso_max_size, before.gso_max_size, now.gso_max_size);
  any |= differs(change.gso_max_segments, before.gso_max_segments, now.gso_max_segments);
  any |= differs(change.ipv6_address_generation, before.ipv6_address_generation,
                 now.ipv6_address_generation);
  const int error = any ? control_->change_link(index_, change) : 0;
  if (error != 0) {
    logger_.warn("cannot leave {} as it was: {}", config_.name,
                 std::generic_category().message(error));
  }
  std::ignore = set_offloads(descriptors_.front(), {});
}

Interface::Impl::~Impl() {
  if (!before_ || state_ == LinkState::Removed) return;  // vanishes with its descriptors
  try {
    restore(*before_);
  } catch (const std::exception& e) {
    logger_.warn("cannot leave {} as it was: {}", config_.name, e.what());
  }
}

Interface Interface::create(const Config& config, Logger& logger) {
  validate(config);
  auto impl = std::make_unique<Impl>(config, logger);
  impl->open();
  impl->configure();
  return Interface(std::move(impl));
}

Interface::Interface(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Interface::Interface(Interface&&) noexcept = default;
Interface& Interface::operator=(Interface&&) noexcept = default;
Interface::~Interface() = default;

std::span<const int> Interface::queues() const { return impl_->descriptors(); }
const std::string& Interface::name() const { return impl_->config().name; }
int Interface::index() const { return impl_->index(); }
std::uint32_t Interface::queue_length() const { return impl_->queue_length(); }
const ProbedOffloads& Interface::offloads() const { return impl_->offloads(); }
Offloads Interface::set_read_offloads(const Offloads& wanted) {
  return impl_->set_read_offloads(wanted);
}
Statistics Interface::statistics() const { return impl_->statistics(); }
void Interface::set_carrier(bool on) { tun::set_carrier(impl_->descriptors().front(), on); }
int Interface::event_fd() const { return impl_->event_fd(); }

LinkState Interface::process_events() noexcept {
  try {
    return impl_->process_events();
  } catch (const std::exception& e) {
    impl_->logger().error("cannot follow the state of {}: {}", name(), e.what());
    return impl_->state();
  }
}

}  // namespace ipoverbs::tun
