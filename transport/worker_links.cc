#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "transport/worker.h"

namespace ipoverbs::transport {

void Worker::submit(Command command) {
  {
    const std::scoped_lock lock(mutex_);
    commands_.push_back(std::move(command));
  }
  has_commands_.store(true, std::memory_order_release);
  command_bell_.ring();
}

std::vector<Report> Worker::take_reports() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(reports_, {});
}

void Worker::report(Report report) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    reports_.push_back(std::move(report));
  }
  report_bell_.ring();
}

void Worker::fail(Link& link, std::string why) noexcept {
  if (std::exchange(link.reported, true)) return;
  deactivate(link);
  report({Report::Kind::Failed, link.id, std::move(why)});
}

void Worker::deactivate(Link& link) noexcept {
  link.active = false;
  std::erase(by_peer_[link.peer], &link);
}

void Worker::run_commands() noexcept {
  std::vector<Command> commands;
  {
    const std::scoped_lock lock(mutex_);
    has_commands_.store(false, std::memory_order_relaxed);
    commands.swap(commands_);
  }
  for (Command& command : commands) {
    std::visit([this](auto& c) { execute(c); }, command);
  }
}

Link* Worker::find(LinkId id) noexcept {
  const auto it = std::ranges::find(links_, id, [](const auto& link) { return link->id; });
  return it == links_.end() ? nullptr : it->get();
}

void Worker::execute(AttachLink& command) {
  const LinkConfig& config = command.config;
  try {
    std::unique_ptr<CreditPool> own_pool;
    if (!shared_receives_) {
      const std::uint32_t depth = queue_pair_config().receive_depth;
      own_pool = std::make_unique<CreditPool>(ReceivePlan{depth, depth - kSessionReceives});
    }
    links_.push_back(std::make_unique<Link>(config, LinkResources{slabs_, credits_, doorbells_},
                                            std::move(own_pool), now_));
    Link& link = *links_.back();
    if (!link.pool.session_joins()) {
      links_.pop_back();
      report({Report::Kind::Failed, config.id, "the receive queue has no places left"});
      return;
    }
    by_queue_pair_[config.queue_pair->qp_num] = &link;
    add_receives(link);
    report({Report::Kind::Attached, config.id, {}});
  } catch (const std::exception& error) {
    // Memory ran out: this session cannot be, the others go on.
    report({Report::Kind::Failed, config.id, error.what()});
  }
}

void Worker::add_buffers(std::uint32_t count) {
  // By an eighth at least: each time is a memory region, of which a device has only so many.
  count = std::max(count, buffers_.count() / 8);
  const std::uint32_t first = buffers_.grow(count);
  spare_buffers_.reserve(buffers_.count());
  for (std::uint32_t i = 0; i < count; ++i) spare_buffers_.append(first + i);
}

void Worker::add_receives(Link& link) {
  // Those that all share are posted with the first session; some may be on their way back just now.
  const auto in_hand = posted_ + static_cast<std::uint32_t>(reposts_.size());
  const std::uint32_t wanted = credits_.receives();
  std::uint32_t count =
      shared_receives_ ? wanted - std::min(wanted, in_hand) : queue_pair_config().receive_depth;
  if (spare_buffers_.size() < count) {
    add_buffers(count - static_cast<std::uint32_t>(spare_buffers_.size()));
  }
  for (; count > 0; --count) {
    reposts_.append({&link, spare_buffers_.take_last()});
    if (reposts_.size() == static_cast<std::size_t>(kPollBatch)) post_receives();
  }
  post_receives();
}

void Worker::execute(ActivateLink& command) {
  Link* link = find(command.id);
  if (link == nullptr || link->reported || link->active) return;
  const bool iwarp = device_.capabilities().link == "iWARP";
  link->activate(command.hello, iwarp && !command.dialled, now_);
  if (iwarp && command.dialled) {
    send_control(*link);
    flush(*link, now_);
  }
  by_peer_[link->peer].push_back(link);
  if (link->not_withdrawn != ~std::uint32_t{0}) {
    report({Report::Kind::PeerWithdrew, link->id, {}, link->not_withdrawn});
  }
}

void Worker::execute(Withdraw& command) { refusals_.withdraw(command.capabilities); }

// At ticks only, so that no two of them are on their way (transport/credits.h).
void Worker::tell_capabilities(Link& link) noexcept {
  const std::uint32_t withdrawn = refusals_.withdrawn();
  if (withdrawn == link.told_withdrawn || !link.active || link.waits_for_first) return;
  if (!copying_.ensure(kFrameHeader)) return;
  const std::span<std::byte> frame = copying_.next(kFrameHeader);
  write_capabilities_frame(frame, options_.capabilities & ~withdrawn);
  if (!link.sends.append_control(copying_.slab(), frame)) return;
  copying_.advance_past(frame);
  link.told_withdrawn = withdrawn;
  flush(link, now_);
}

void Worker::execute(DetachLink& command) {
  Link* link = find(command.id);
  if (link != nullptr) {
    counters_.add(Counter::TxDropPostFailed, link->waiting.count());
    link->waiting.clear();
    link->detached = true;
    link->reported = true;
    deactivate(*link);
  }
  report({Report::Kind::Detached, command.id, {}});
}

void Worker::execute(ForgetLink& command) {
  Link* link = find(command.id);
  if (link == nullptr) return;
  const auto number =
      std::ranges::find(by_queue_pair_, link, [](const auto& p) { return p.second; });
  if (number != by_queue_pair_.end()) by_queue_pair_.erase(number);
  link->pool.session_left(link->grantor.outstanding());
  // This may be in the middle of a batch of completions.
  for (Repost& repost : reposts_.elements()) {
    if (repost.link == link) repost.link = nullptr;
  }
  std::erase_if(links_, [link](const auto& l) { return l.get() == link; });
}

}  // namespace ipoverbs::transport
