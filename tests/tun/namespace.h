// What root tests need: a network namespace of their own, fewer capabilities, other mounts.
#pragma once

#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "core/fd.h"

namespace ipoverbs::tun {

// A new network namespace.
class TestNamespace {
 public:
  // Throws SystemError.
  TestNamespace();
  // Puts the calling thread into it. Throws SystemError.
  void enter() const;
  // A path that opens it, good while this object lives.
  [[nodiscard]] std::string path() const;

 private:
  Fd fd_;
};

// Why TUN tests cannot run here, "" if they can: no root, no /dev/net/tun.
[[nodiscard]] std::string why_no_tun();

// Runs in a network namespace of its own, skipped with a reason where that cannot be had.
class NamespaceTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

 private:
  Fd original_;
};

// Call `work` in a thread of its own; what it throws is thrown here. The second without
// CAP_NET_ADMIN, the third as user 65534 without capabilities, the fourth with an empty directory
// in the place of `directory`.
void in_thread(const std::function<void()>& work);
void without_net_admin(const std::function<void()>& work);
void as_nobody(const std::function<void()>& work);
void with_empty_directory(const std::string& directory, const std::function<void()>& work);

}  // namespace ipoverbs::tun
