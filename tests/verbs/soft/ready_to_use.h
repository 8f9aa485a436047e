// A message of the CM, for tests of what carries it.
#pragma once

#include "verbs/soft/cm_message.h"

namespace ipoverbs::verbs::soft::test {

[[nodiscard]] inline Mad ready_to_use() {
  return emit_cm({TransactionId(1), ReadyToUseMessage{CommId(1), CommId(2), {}}});
}

}  // namespace ipoverbs::verbs::soft::test
