#include "daemon/control_server.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "daemon/control_socket.h"
#include "tests/daemon/temporary_folder.h"

namespace ipoverbs::daemon {
namespace {

class ControlServerTest : public ::testing::Test {
 protected:
  Fd connect() {
    Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, socket_.path().data(), socket_.path().size());
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return fd;
  }

  static void send(const Fd& fd, std::string_view text) {
    EXPECT_EQ(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }

  // Runs what is ready to run.
  void turn() {
    io_.restart();
    while (io_.poll() > 0) {
    }
  }

  struct Received {
    std::string text;
    bool closed = false;
  };
  Received receive(const Fd& fd) {
    Received received;
    std::array<char, 65536> block;
    while (true) {
      turn();
      const ssize_t got = ::recv(fd.get(), block.data(), block.size(), 0);
      if (got <= 0) {
        received.closed = got == 0 || errno != EAGAIN;
        return received;
      }
      received.text.append(block.data(), static_cast<std::size_t>(got));
    }
  }

  TemporaryFolder folder_;
  asio::io_context io_{1};
  ControlSocket socket_{folder_ / "t0.sock"};
  std::string text_ = "text";
  ControlServer server_{io_, socket_.fd(), [this](Request request) {
                          return request == Request::StatusText ? text_ : "{}";
                        }};
};

TEST_F(ControlServerTest, AnswersAndCloses) {
  const Fd client = connect();
  send(client, "status text\n");
  const Received received = receive(client);
  EXPECT_EQ(received.text, "ok 4\ntext");
  EXPECT_TRUE(received.closed);
  turn();
  EXPECT_EQ(server_.connections(), 0U);
}

TEST_F(ControlServerTest, TakesARequestInPieces) {
  const Fd client = connect();
  send(client, "sta");
  EXPECT_EQ(receive(client).text, "");
  send(client, "tus\n");
  EXPECT_EQ(receive(client).text, "ok 2\n{}");
}

TEST_F(ControlServerTest, SendsALargeAnswerWhole) {
  text_ = std::string(3'000'000, 'x');
  const Fd client = connect();
  send(client, "status text\n");
  const Received received = receive(client);
  EXPECT_EQ(received.text, format_answer(text_));
  EXPECT_TRUE(received.closed);
}

TEST_F(ControlServerTest, RefusesWhatIsNoRequest) {
  const std::pair<std::string, std::string> kCases[] = {
      {"stop\n", "error unknown request; known are 'status text', 'status json'\n"},
      {std::string(kMaxRequest, 'x'), "error the request is too long\n"},
      {"status\nstatus\n", "error more than one request\n"},
  };
  for (const auto& [request, right] : kCases) {
    const Fd client = connect();
    send(client, request);
    const Received received = receive(client);
    EXPECT_EQ(received.text, right);
    EXPECT_TRUE(received.closed);
  }
}

TEST_F(ControlServerTest, AClientThatLeavesIsForgotten) {
  {
    const Fd client = connect();
    send(client, "status");
    turn();
    EXPECT_EQ(server_.connections(), 1U);
  }
  turn();
  EXPECT_EQ(server_.connections(), 0U);
}

TEST_F(ControlServerTest, SilentClientsAreLimitedAndOneThatLeavesMakesRoom) {
  std::vector<Fd> silent;
  for (std::size_t i = 0; i < ControlServer::kMaxConnections; ++i) silent.push_back(connect());
  turn();
  EXPECT_EQ(server_.connections(), ControlServer::kMaxConnections);
  const Fd client = connect();
  send(client, "status\n");
  EXPECT_EQ(receive(client).text, "");
  silent.pop_back();
  EXPECT_EQ(receive(client).text, "ok 2\n{}");
}

// A client that asks and never reads must not hold up the others.
TEST_F(ControlServerTest, AClientThatDoesNotReadStallsNobody) {
  text_ = std::string(3'000'000, 'x');
  const Fd lazy = connect();
  send(lazy, "status text\n");
  turn();
  const Fd client = connect();
  send(client, "status\n");
  EXPECT_EQ(receive(client).text, "ok 2\n{}");
}

TEST(ControlServer, MayGoBeforeItsConnections) {
  const TemporaryFolder folder;
  asio::io_context io{1};
  const ControlSocket socket(folder / "t0.sock");
  {
    const ControlServer server(io, socket.fd(), [](Request) { return "text"; });
    io.poll();
  }
  io.restart();
  io.poll();
}

}  // namespace
}  // namespace ipoverbs::daemon
