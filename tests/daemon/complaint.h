// What the user is told who made a mistake.
#pragma once

#include <string>

#include "core/error.h"

namespace ipoverbs::daemon {

// What `act` says with UsageError; "no complaint" if it takes what it is given.
template <class Act>
[[nodiscard]] std::string complaint_of(const Act& act) {
  try {
    (void)act();
    return "no complaint";
  } catch (const UsageError& error) {
    return error.what();
  }
}

}  // namespace ipoverbs::daemon
