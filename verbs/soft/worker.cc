#include "verbs/soft/worker.h"

#include <sched.h>

#include <algorithm>
#include <utility>

namespace ipoverbs::verbs::soft {

class Worker::Inside {
 public:
  explicit Inside(Worker& worker) noexcept : worker_(worker) {
    worker_.entered_.fetch_add(1, std::memory_order_seq_cst);
    if (worker_.waiting_.load(std::memory_order_seq_cst)) worker_.run_commands();
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() {
    worker_.entered_.fetch_add(1, std::memory_order_release);
    if (worker_.engine_.completions().take_event()) worker_.bell_.ring();
  }

 private:
  Worker& worker_;
};

Worker::Worker(ibv_context& owner, Wire& wire, EngineObserver& observer, Bell& bell,
               const TimeSource& time, std::uint32_t depth)
    : ibv_cq{}, engine_(wire, observer, depth), bell_(bell), time_(time) {
  context = &owner;
  cqe = static_cast<int>(depth);
}

void Worker::hand_over(Command command) {
  {
    const std::scoped_lock lock(mutex_);
    commands_.push_back(std::move(command));
    waiting_.store(true, std::memory_order_seq_cst);
  }
  bell_.ring();
}

void Worker::settle() const noexcept {
  const std::uint64_t entered = entered_.load(std::memory_order_seq_cst);
  if (entered % 2 == 0) return;
  while (entered_.load(std::memory_order_acquire) == entered) ::sched_yield();
}

void Worker::run_commands() noexcept {
  std::vector<Command> commands;
  {
    const std::scoped_lock lock(mutex_);
    commands.swap(commands_);
    waiting_.store(false, std::memory_order_relaxed);
  }
  for (const Command& command : commands) command(engine_);
}

int Worker::poll(int entries, ibv_wc* completions) noexcept {
  const Inside inside(*this);
  const std::span out(completions, static_cast<std::size_t>(std::max(entries, 0)));
  if (std::exchange(just_armed_, false) && std::exchange(looked_, false)) {
    return static_cast<int>(engine_.completions().pop(out));
  }
  looked_ = true;
  const TimePoint now = time_.now();
  const std::uint32_t count = engine_.poll(out, now);
  if (armed_) keep_alarm(now);
  return static_cast<int>(count);
}

int Worker::arm(bool solicited_only) noexcept {
  const Inside inside(*this);
  engine_.completions().arm(solicited_only);
  armed_ = true;
  just_armed_ = true;
  keep_alarm(time_.now());
  return 0;
}

int Worker::post_send(QueuePair& qp, ibv_send_wr* list, ibv_send_wr** bad) noexcept {
  const Inside inside(*this);
  const TimePoint now = time_.now();
  const int error = engine_.post_send(qp, list, bad, now);
  if (armed_) keep_alarm(now);
  return error;
}

void Worker::keep_alarm(TimePoint now) noexcept {
  const auto due = engine_.deadline();
  if (!due) return;
  if (alarm_ && *alarm_ > now && *alarm_ <= *due) return;
  alarm_ = due;
  bell_.set_alarm(*due);
}

SharedReceives::SharedReceives(ibv_context& owner, const MemoryTable& memory, std::uint32_t depth)
    : ibv_srq{}, memory_(memory), queue_(depth, 1, ReceiveQueue::Order::NewestFirst) {
  context = &owner;
}

int SharedReceives::post(ibv_recv_wr* list, ibv_recv_wr** bad) noexcept {
  for (; list != nullptr; list = list->next) {
    const int error = queue_.post(*list, memory_);
    if (error != 0) {
      *bad = list;
      return error;
    }
  }
  return 0;
}

// ibv_poll_cq and its kin call through the context; the objects are ours by their first base.
ibv_context make_context() {
  ibv_context context{};
  // verbs_get_ctx() looks in front of a context whose abi_compat is all ones: zero keeps it off.
  context.abi_compat = nullptr;
  context.cmd_fd = -1;
  context.async_fd = -1;
  context.ops.poll_cq = [](ibv_cq* cq, int entries, ibv_wc* completions) {
    return static_cast<Worker*>(cq)->poll(entries, completions);
  };
  context.ops.req_notify_cq = [](ibv_cq* cq, int solicited_only) {
    return static_cast<Worker*>(cq)->arm(solicited_only != 0);
  };
  context.ops.post_send = [](ibv_qp* qp, ibv_send_wr* list, ibv_send_wr** bad) {
    return static_cast<Worker*>(qp->send_cq)->post_send(*static_cast<QueuePair*>(qp), list, bad);
  };
  context.ops.post_recv = [](ibv_qp* qp, ibv_recv_wr* list, ibv_recv_wr** bad) {
    return static_cast<QueuePair*>(qp)->post_recv(list, bad);
  };
  context.ops.post_srq_recv = [](ibv_srq* srq, ibv_recv_wr* list, ibv_recv_wr** bad) {
    return static_cast<SharedReceives*>(srq)->post(list, bad);
  };
  return context;
}

}  // namespace ipoverbs::verbs::soft
