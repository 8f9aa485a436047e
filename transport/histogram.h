// SizeHistogram: how often something had which size, by powers of two.
//
// Bucket i counts sizes from 2^i to 2^(i+1) - 1, the last one everything from there on. Like a
// Gauge it has one writer and any number of readers; a reader may see a bucket before another that
// was written earlier.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/gauge.h"

namespace ipoverbs::transport {

class SizeHistogram {
 public:
  static constexpr std::size_t kBuckets = 24;
  using Counts = std::array<std::uint64_t, kBuckets>;

  // The writer's. Nothing has no size.
  void add(std::uint64_t size) noexcept {
    if (size == 0) return;
    buckets_[std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(size)), kBuckets) - 1]
        .add();
  }

  void add_to(Counts& counts) const noexcept {
    for (std::size_t i = 0; i < kBuckets; ++i) counts[i] += buckets_[i].value();
  }

 private:
  std::array<Gauge, kBuckets> buckets_;
};

// Of the doorbells that carried packets: IP packets and their bytes in each.
struct DoorbellSizes {
  SizeHistogram packets, bytes;
};

struct DoorbellCounts {
  SizeHistogram::Counts packets{}, bytes{};

  void add(const DoorbellSizes& sizes) noexcept {
    sizes.packets.add_to(packets);
    sizes.bytes.add_to(bytes);
  }
};

}  // namespace ipoverbs::transport
