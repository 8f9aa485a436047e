// Network namespaces by name.
#pragma once

#include <functional>
#include <string>

#include "core/fd.h"

namespace ipoverbs::tun {

// A network namespace, held open.
class NetworkNamespace {
 public:
  // `name`: a name under /run/netns (ip-netns(8)), or a path if it has a '/'; empty: whatever
  // namespace the thread that calls run() is in. Throws UsageError if there is none of that name.
  explicit NetworkNamespace(const std::string& name);

  // Calls `work` in this namespace, in a thread of its own that ends with it (in the calling thread
  // if the name was empty); what `work` throws is thrown here. Sockets opened by `work` stay in the
  // namespace. Throws UsageError if the namespace may not be entered.
  void run(const std::function<void()>& work) const;

 private:
  std::string name_;
  Fd fd_;
};

}  // namespace ipoverbs::tun
