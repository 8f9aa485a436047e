// ring2: two processes, each with a TUN interface, joined by rings in shared memory.
//
// Theory of operation. This is the shape of two daemons on a wire that costs nothing: each process
// reads its TUN straight into a slot of the ring, and the other writes it to its own TUN from
// there. What is left is what no pair of daemons can do without: a read(2) and a write(2) a packet,
// the way of the bytes from one CPU's cache to the other's, and a wake-up where one waits for the
// other. A tunnel is judged by its share of this.
//
// Each turn sends at most kBatch packets and receives as many. With the ring full, the TUN is left
// unread, and its own queue drops at its tail. With nothing to do, a process sleeps until its TUN
// or the other process has something (bench/bounds/channel.h).
#include <poll.h>

#include <array>
#include <cerrno>

#include "bench/bounds/channel.h"
#include "bench/bounds/end.h"
#include "bench/bounds/options.h"
#include "bench/bounds/stop_signal.h"
#include "core/error.h"

namespace {

using namespace ipoverbs;

class Side {
 public:
  Side(bounds::End& end, bounds::Channel& channel, const bounds::StopSignal& stop)
      : end_(end), channel_(channel), stop_(stop), out_(channel.out()), in_(channel.in()) {}

  // Until the signal, or until the other process has gone.
  void run() {
    for (unsigned turn = 1;; ++turn) {
      const bool sent = send();
      const bool received = receive();
      const bool busy = sent || received;
      if (busy && turn % bounds::kTurnsUnwatched != 0) continue;
      if (!(busy ? look() : sleep())) return;
    }
  }

 private:
  bool send() {
    unsigned i = 0;
    for (; i < bounds::kBatch && !out_.full(); ++i) {
      const std::size_t size = end_.read(out_.slot());
      if (size == 0) break;
      out_.publish(size);
      channel_.wake_for_packets();
    }
    return i > 0;
  }

  bool receive() {
    unsigned i = 0;
    for (; i < bounds::kBatch && !in_.empty(); ++i) {
      end_.write(in_.front());
      in_.release();
    }
    if (i > 0) channel_.wake_for_room();
    return i > 0;
  }

  bool sleep() {
    const bool full = out_.full();
    channel_.fall_asleep(full ? bounds::Sleep::ForPacketsOrRoom : bounds::Sleep::ForPackets);
    const bool something = !in_.empty() || (full && !out_.full());
    const bool go_on = wait(something ? 0 : -1, full);
    channel_.wake_up();
    return go_on;
  }

  bool look() { return wait(0, true); }

  // Returns whether to go on.
  bool wait(int timeout, bool without_tun) {
    std::array<pollfd, 4> events{{{stop_.fd(), POLLIN, 0},
                                  {channel_.peer_fd(), POLLIN, 0},
                                  {channel_.bell(), POLLIN, 0},
                                  {end_.fd(), POLLIN, 0}}};
    if (::poll(events.data(), without_tun ? 3 : 4, timeout) < 0) {
      throw SystemError(errno, "wait for packets");
    }
    if (events[2].revents != 0) channel_.silence();
    return events[0].revents == 0 && events[1].revents == 0;
  }

  bounds::End& end_;
  bounds::Channel& channel_;
  const bounds::StopSignal& stop_;
  bounds::Producer out_;
  bounds::Consumer in_;
};

void run(int argc, char** argv) {
  const bounds::Options options = bounds::parse_options(argc, argv, 1);
  bounds::Channel channel = options.listen.empty() ? bounds::Channel::connect(options.connect)
                                                   : bounds::Channel::listen(options.listen);
  const bounds::StopSignal stop;
  const auto logger = make_stderr_logger("warn");
  bounds::End end(options.sides[0], options.superpackets, *logger);
  Side(end, channel, stop).run();
  end.report();
}

}  // namespace

int main(int argc, char** argv) { return ipoverbs::bounds::exit_status("ring2", run, argc, argv); }
