// Channel: what joins the two processes of ring2.
//
// Theory of operation. One process listens at a UNIX socket. It makes an anonymous file with a ring
// for each direction and two eventfds, one to wake each process, and hands the three descriptors to
// the process that connects. The socket stays open and carries nothing more: its end is how either
// hears that the other has gone.
//
// Sleep. Who finds nothing to do writes into shared memory what it waits for, looks once more, and
// then waits at its eventfd. Who has published a packet or given back a slot rings only where the
// other waits for that: while both are busy, nobody makes a system call for the other's sake. A
// sequentially consistent fence on either side, between one's own write and the look at the
// other's, keeps both from missing each other.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "bench/bounds/ring.h"
#include "core/fd.h"

namespace ipoverbs::bounds {

enum class Sleep : std::uint32_t { Awake, ForPackets, ForPacketsOrRoom };

struct SharedState {
  std::array<Ring, 2> rings;  // [0] from the listener, [1] to it
  struct alignas(kCacheLine) Sleeper {
    std::atomic<Sleep> sleep{Sleep::Awake};
  };
  std::array<Sleeper, 2> sleepers;  // [0] the listener
};

class Channel {
 public:
  // Waits for the other process at `path`, which is made and removed again. Throws SystemError,
  // after kPatience too.
  [[nodiscard]] static Channel listen(const std::string& path);
  // Tries for kPatience seconds until there is somebody. Throws SystemError.
  [[nodiscard]] static Channel connect(const std::string& path);

  [[nodiscard]] Ring& out() { return shared_->rings[me_]; }
  [[nodiscard]] Ring& in() { return shared_->rings[1 - me_]; }

  // To be called after a packet was published, and after slots were given back.
  void wake_for_packets() noexcept { wake(Sleep::ForPackets); }
  void wake_for_room() noexcept { wake(Sleep::ForPacketsOrRoom); }

  // Between these two, whoever has what this side waits for makes bell() readable.
  void fall_asleep(Sleep what) noexcept;
  void wake_up() noexcept;
  // To be called when bell() is readable, which it may be late: after wake_up().
  void silence() noexcept { my_bell_.silence(); }

  [[nodiscard]] int bell() const { return my_bell_.fd(); }
  // Readable when the other process has gone.
  [[nodiscard]] int peer_fd() const { return peer_.get(); }

 private:
  Channel(std::size_t me, Fd peer, const Fd& memory, Fd my_bell, Fd peer_bell);
  void wake(Sleep least) noexcept;

  // Unmaps what it owns.
  class Mapping {
   public:
    explicit Mapping(const Fd& memory);
    Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
    Mapping& operator=(Mapping&&) = delete;
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping();
    // The memory is zero at first, which is what a new SharedState is.
    [[nodiscard]] SharedState* operator->() const;

   private:
    std::span<std::byte> bytes_;
  };

  std::size_t me_;
  Fd peer_;
  Mapping shared_;
  EventFd my_bell_;
  EventFd peer_bell_;
};

}  // namespace ipoverbs::bounds
