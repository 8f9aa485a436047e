// The checksum benchmark's figures as a drawing.
#pragma once

#include <string>

#include "bench/csum/report.h"

namespace ipoverbs::bench {

// An SVG document: a panel for each temperature, a line for each contestant, GB/s over size.
[[nodiscard]] std::string svg(const Report& report);

}  // namespace ipoverbs::bench
