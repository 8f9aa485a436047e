// Hearing of what others do to an interface.
#pragma once

#include <optional>

#include "tun/netlink_message.h"

namespace ipoverbs::tun {

// Listens to RTNLGRP_LINK in the network namespace of the thread that made it.
class LinkWatch {
 public:
  // Throws SystemError.
  LinkWatch();
  // Readable when read() has news.
  [[nodiscard]] int fd() const { return socket_.fd(); }

  struct News {
    bool went_down = false;  // at least once since the last call
    bool removed = false;    // deleted, or moved to another namespace
    bool lost = false;       // the kernel had more to tell than the socket could hold
    std::optional<bool> up;  // what the last message said
  };
  // What was heard of interface `index` since the last call. Does not wait.
  [[nodiscard]] News read(int index);

 private:
  NetlinkSocket socket_;
};

}  // namespace ipoverbs::tun
