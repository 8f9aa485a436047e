// Path: where a queue pair's packets go, and what their IP and UDP headers will be.
#pragma once

#include <cstdint>

#include "core/ip.h"
#include "verbs/soft/icrc.h"
#include "verbs/soft/roce.h"

namespace ipoverbs::verbs::soft {

class Path {
 public:
  Path() = default;
  // From `local`, its port being the one that is sent from, to port 4791 of `remote`. The path
  // carries `traffic_class` (DSCP and ECN) if the port can set it.
  Path(const Endpoint& local, const Endpoint& remote, std::uint8_t traffic_class = 0)
      : local_(local),
        remote_{remote.address, kRocePort, remote.scope},
        flow_(local.address, local.port, remote.address, kRocePort),
        traffic_class_(traffic_class) {}

  [[nodiscard]] const Endpoint& local() const { return local_; }
  [[nodiscard]] const Endpoint& remote() const { return remote_; }
  [[nodiscard]] const IcrcFlow& flow() const { return flow_; }
  [[nodiscard]] std::uint8_t traffic_class() const { return traffic_class_; }
  void set_traffic_class(std::uint8_t traffic_class) { traffic_class_ = traffic_class; }

 private:
  Endpoint local_;
  Endpoint remote_;
  IcrcFlow flow_;
  std::uint8_t traffic_class_ = 0;
};

}  // namespace ipoverbs::verbs::soft
