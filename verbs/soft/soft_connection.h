// A reliable connection of the software device: what the connection manager knows of it, and its
// queue pair, which lives with the worker of its completion queue.
//
// The queue pair's states are changed by commands to the worker, in the order in which the
// connection manager wants them. Destruction hands the removal over and then waits for the worker
// to be outside, a poll's time at most: after it nothing looks at the memory that was posted.
//
// A listener with a smaller path MTU than ours rejects a request for that reason
// (RejectReason::InvalidPathMtu, 12.6.7.2): then the request is made again with half of it.
//
// Thread: the control thread.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>

#include "verbs/device.h"
#include "verbs/soft/control.h"
#include "verbs/soft/queue_pair.h"

namespace ipoverbs::verbs::soft {

class SoftConnection final : public Connection {
 public:
  // Dials: queues RouteResolved, or Failed when this host has no route. Throws SystemError for an
  // address that cannot be.
  SoftConnection(Control& control, const RemoteAddress& remote, const PathOptions& path);
  // Takes a connect request over.
  SoftConnection(Control& control, const CmEvent& request);
  SoftConnection(const SoftConnection&) = delete;
  SoftConnection& operator=(const SoftConnection&) = delete;
  ~SoftConnection() override;

  void create_queue_pair(const QueuePairConfig& config) override;
  [[nodiscard]] ibv_qp* queue_pair() const override { return queue_pair_.get(); }
  void connect(std::span<const std::byte> private_data) override;
  void accept(std::span<const std::byte> private_data) override;
  void reject(std::span<const std::byte> private_data) override;
  void disconnect() noexcept override;
  [[nodiscard]] Endpoint remote() const override { return remote_; }
  [[nodiscard]] QueuePairAttributes attributes() const override;

  // For Control. 0 before connect().
  [[nodiscard]] CommId id() const { return id_; }
  void connect_queue_pair(const CmQueuePairConnect& how);
  void flush_queue_pair();
  // Whether `event` is a rejection that is answered by another request.
  [[nodiscard]] bool dials_again(const CmEvent& event);

 private:
  void send_request();
  [[nodiscard]] CmQueuePair cm_queue_pair() const;
  void require_queue_pair(const char* tried) const;

  Control& control_;
  Endpoint remote_;
  std::uint8_t traffic_class_ = 0;
  PathMtu path_mtu_;
  CommId id_;
  std::array<std::byte, kConnectPrivateData> private_data_{};  // of the request
  std::size_t private_size_ = 0;
  SoftCompletionQueue* completions_ = nullptr;
  std::shared_ptr<QueuePair> queue_pair_;
};

}  // namespace ipoverbs::verbs::soft
