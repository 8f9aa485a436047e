#include "tests/tun/namespace.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <exception>
#include <thread>

#include <fmt/format.h>

#include "core/error.h"

namespace ipoverbs::tun {

namespace {

constexpr const char* kOwnNamespace = "/proc/thread-self/ns/net";

Fd open_namespace() {
  Fd fd(::open(kOwnNamespace, O_RDONLY | O_CLOEXEC));
  if (!fd) throw SystemError(errno, kOwnNamespace);
  return fd;
}

void must(int result, const char* tried) {
  if (result != 0) throw SystemError(errno, tried);
}

}  // namespace

void in_thread(const std::function<void()>& work) {
  std::exception_ptr thrown;
  std::thread([&] {
    try {
      work();
    } catch (...) {
      thrown = std::current_exception();
    }
  }).join();
  if (thrown) std::rethrow_exception(thrown);
}

TestNamespace::TestNamespace() {
  in_thread([this] {
    must(::unshare(CLONE_NEWNET), "make a network namespace");
    fd_ = open_namespace();
  });
}

void TestNamespace::enter() const {
  must(::setns(fd_.get(), CLONE_NEWNET), "enter a network namespace");
}

std::string TestNamespace::path() const { return fmt::format("/proc/self/fd/{}", fd_.get()); }

std::string why_no_tun() {
  if (::geteuid() != 0) return "needs root, to make network namespaces and TUN interfaces";
  if (::access("/dev/net/tun", R_OK | W_OK) != 0) return "needs /dev/net/tun";
  return {};
}

void NamespaceTest::SetUp() {
  if (const std::string reason = why_no_tun(); !reason.empty()) GTEST_SKIP() << reason;
  original_ = open_namespace();
  TestNamespace().enter();
}

void NamespaceTest::TearDown() {
  if (original_) must(::setns(original_.get(), CLONE_NEWNET), "leave the network namespace");
}

void without_net_admin(const std::function<void()>& work) {
  in_thread([&] {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, 2> data{};
    must(static_cast<int>(::syscall(SYS_capget, &header, data.data())), "capget");
    data[0].effective &= ~(1U << CAP_NET_ADMIN);
    must(static_cast<int>(::syscall(SYS_capset, &header, data.data())), "capset");
    work();
  });
}

void as_nobody(const std::function<void()>& work) {
  in_thread([&] {
    // The system call is the thread's, the library function would be the process's.
    must(static_cast<int>(::syscall(SYS_setresuid, -1, 65534, -1)), "setresuid");
    work();
  });
}

void with_empty_directory(const std::string& directory, const std::function<void()>& work) {
  in_thread([&] {
    must(::unshare(CLONE_NEWNS), "make a mount namespace");
    must(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "make mounts private");
    must(::mount("none", directory.c_str(), "tmpfs", 0, nullptr), "mount an empty directory");
    work();
  });
}

}  // namespace ipoverbs::tun
