// A reliable connection of the software device: what the connection manager knows of it, and its
// queue pair, which lives with the worker of its completion queue.
//
// The queue pair's states are changed by commands to the worker, in the order in which the
// connection manager wants them. Destruction hands the removal over and then waits for the worker
// to be outside, a poll's time at most: after it nothing looks at the memory that was posted.
//
// Who dials asks for the path MTU that its route has then, so that a connection made after a path
// has shrunk fits it. A listener with a smaller one than ours rejects a request for that reason
// (RejectReason::InvalidPathMtu, 12.6.7.2): then the request is made again with half of it.
//
//   who dials:    Resolving --RouteResolved--> Ready --connect()--> Connecting
//   who listens:  Requested --accept()--> Connecting
//   both:         Connecting --Established--> Connected; Over from any of them
//
// Thread: the control thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "verbs/device.h"
#include "verbs/soft/cm_machine.h"
#include "verbs/soft/queue_pair.h"
#include "verbs/soft/worker.h"

namespace ipoverbs::verbs::soft {

class Connections;

class SoftConnection final : public Connection {
 public:
  // Of who dials; its route is taken to be resolved.
  SoftConnection(Connections& connections, const Endpoint& remote, PathMtu path_mtu,
                 std::uint8_t traffic_class);
  // Takes a connect request over.
  SoftConnection(Connections& connections, CommId id, const Endpoint& remote, PathMtu path_mtu);
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

  // --- Of Connections -------------------------------------------------------------------------
  // nullopt before connect().
  [[nodiscard]] std::optional<CommId> id() const { return id_; }
  void on_connect(const CmQueuePairConnect& how);
  void on_flush();
  // Whether `event` is a rejection that another request answers.
  [[nodiscard]] bool dials_again(const CmEvent& event);
  // An event of that kind is about to be handed to the user.
  void on_event(EventKind kind);

 private:
  enum class State : std::uint8_t { Resolving, Ready, Requested, Connecting, Connected, Over };

  void send_request();
  [[nodiscard]] CmQueuePair cm_queue_pair() const;
  void require(bool good, const char* tried) const;

  Connections& connections_;
  State state_;
  Endpoint remote_;
  std::uint8_t traffic_class_ = 0;
  PathMtu path_mtu_;
  std::optional<CommId> id_;
  std::array<std::byte, kConnectPrivateData> private_data_{};  // of the request
  std::size_t private_size_ = 0;
  Worker* worker_ = nullptr;
  Endpoint sends_from_;
  std::uint64_t window_limit_ = 0;
  std::shared_ptr<QueuePair> queue_pair_;
};

}  // namespace ipoverbs::verbs::soft
