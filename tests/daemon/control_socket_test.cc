#include "daemon/control_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <tuple>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/daemon/complaint.h"
#include "tests/daemon/temporary_folder.h"

namespace ipoverbs::daemon {
namespace {

using std::filesystem::exists;

std::string socket_complaint(const std::string& path) {
  return complaint_of([&] { const ControlSocket socket(path); });
}

// A socket file as a process leaves it that was killed.
void leave_socket(const std::string& path) {
  const Fd fd(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  ASSERT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
}

TEST(ControlSocket, IsTheUsersAloneAndLeavesNothing) {
  const TemporaryFolder folder;
  const std::string path = folder / "made/t0.sock";
  {
    const ControlSocket socket(path);
    struct stat file{};
    ASSERT_EQ(::stat(path.c_str(), &file), 0);
    EXPECT_TRUE(S_ISSOCK(file.st_mode));
    EXPECT_EQ(file.st_mode & 0777U, 0600U);
    EXPECT_EQ(socket.path(), path);
  }
  EXPECT_FALSE(exists(folder / "made"));
}

TEST(ControlSocket, KeepsAFolderThatWasThere) {
  const TemporaryFolder folder;
  {
    const ControlSocket socket(folder / "t0.sock");
  }
  EXPECT_TRUE(exists(folder / "."));
  EXPECT_FALSE(exists(folder / "t0.sock"));
}

TEST(ControlSocket, ASecondDaemonIsRefusedAndTheFirstUnharmed) {
  const TemporaryFolder folder;
  const std::string path = folder / "t0.sock";
  std::optional<ControlSocket> first(path);
  const std::string right = fmt::format(
      "--control: '{}': another ipoverbs daemon answers there; choose another --tun or --control",
      path);
  EXPECT_EQ(socket_complaint(path), right);
  EXPECT_EQ(socket_complaint(path), right);
  EXPECT_TRUE(exists(path));
  first.reset();
  EXPECT_EQ(socket_complaint(path), "no complaint");
}

TEST(ControlSocket, AStaleSocketIsReplaced) {
  const TemporaryFolder folder;
  const std::string path = folder / "t0.sock";
  leave_socket(path);
  EXPECT_EQ(socket_complaint(path), "no complaint");
  EXPECT_FALSE(exists(path));
}

TEST(ControlSocket, WhatIsNoSocketStays) {
  const TemporaryFolder folder;
  const std::string path = folder / "t0.sock";
  std::ofstream(path) << "precious";
  EXPECT_EQ(socket_complaint(path),
            fmt::format("--control: '{}': is there and is not a socket", path));
  EXPECT_TRUE(exists(path));
}

TEST(ControlSocket, AnothersSocketInItsPlaceStays) {
  const TemporaryFolder folder;
  const std::string path = folder / "t0.sock";
  {
    const ControlSocket socket(path);
    std::filesystem::remove(path);
    leave_socket(folder / "other.sock");  // or the inode's number might be used again
    leave_socket(path);
  }
  EXPECT_TRUE(exists(path));
}

TEST(ControlSocket, FolderThatCannotBeMade) {
  const TemporaryFolder folder;
  EXPECT_EQ(socket_complaint(folder / "a/b/t0.sock"),
            fmt::format("--control: '{}': cannot make folder '{}': No such file or directory",
                        folder / "a/b/t0.sock", folder / "a/b"));
  EXPECT_FALSE(exists(folder / "a"));
}

TEST(AskDaemon, SaysThatNobodyIsThere) {
  const TemporaryFolder folder;
  const std::string path = folder / "t0.sock";
  const auto error = [&] {
    try {
      std::ignore = ask_daemon(path, "status\n");
      return 0;
    } catch (const SystemError& e) {
      return e.code().value();
    }
  };
  EXPECT_EQ(error(), ENOENT);
  leave_socket(path);
  EXPECT_EQ(error(), ECONNREFUSED);
}

}  // namespace
}  // namespace ipoverbs::daemon
