// What csum/packet.h does, a byte at a time and in the plainest way: copies, no tricks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "csum/packet.h"
#include "tests/csum/memory.h"

namespace ipoverbs::csum::reference {

[[nodiscard]] Verdict verify(const Bytes& packet);
// The packet after complete(), or why not.
[[nodiscard]] Completion complete(Bytes& packet, ChecksumPlace place);

}  // namespace ipoverbs::csum::reference
