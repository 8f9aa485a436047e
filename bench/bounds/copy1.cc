// copy1: one process that copies between two TUN interfaces.
//
// Theory of operation. This is the least that any program does which carries packets from one TUN
// to another one: a read(2) and a write(2) a packet, virtio header included, so that super-packets
// and partial checksums pass as they are. There is no wire, no second process and no wake-up
// between the two ends; one buffer serves every packet and stays in the cache. What a tunnel
// between two namespaces of one machine could reach if all of its own work cost nothing is bounded
// by this and, as a tunnel has a process on either side, more tightly by ring2.
//
// Both directions take turns of at most kBatch packets. When neither has any, it sleeps in poll(2).
#include <poll.h>

#include <array>
#include <cerrno>
#include <span>
#include <vector>

#include "bench/bounds/end.h"
#include "bench/bounds/options.h"
#include "bench/bounds/stop_signal.h"
#include "core/error.h"
#include "tun/virtio_net.h"

namespace {

using namespace ipoverbs;

// Returns whether there was anything to copy.
bool copy_batch(bounds::End& from, bounds::End& to, std::span<std::byte> record) {
  for (unsigned i = 0; i < bounds::kBatch; ++i) {
    const std::size_t size = from.read(record);
    if (size == 0) return i > 0;
    to.write(record.first(size));
  }
  return true;
}

// Until the signal.
void copy_both_ways(bounds::End& a, bounds::End& b, const bounds::StopSignal& stop) {
  std::vector<std::byte> record(tun::kMaxRecord);
  std::array<pollfd, 3> events{{{stop.fd(), POLLIN, 0}, {a.fd(), POLLIN, 0}, {b.fd(), POLLIN, 0}}};
  for (unsigned turn = 1;; ++turn) {
    const bool there = copy_batch(a, b, record);
    const bool back = copy_batch(b, a, record);
    const bool busy = there || back;
    if (busy && turn % bounds::kTurnsUnwatched != 0) continue;
    if (::poll(events.data(), events.size(), busy ? 0 : -1) < 0) {
      throw SystemError(errno, "wait for packets");
    }
    if (events[0].revents != 0) return;
  }
}

void run(int argc, char** argv) {
  const bounds::Options options = bounds::parse_options(argc, argv, 2);
  const bounds::StopSignal stop;
  const auto logger = make_stderr_logger("warn");
  bounds::End a(options.sides[0], options.superpackets, *logger);
  bounds::End b(options.sides[1], options.superpackets, *logger);
  copy_both_ways(a, b, stop);
  a.report();
  b.report();
}

}  // namespace

int main(int argc, char** argv) { return ipoverbs::bounds::exit_status("copy1", run, argc, argv); }
