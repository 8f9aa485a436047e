#include "verbs/rdma/memlock.h"

#include <cerrno>

#include <gtest/gtest.h>

#include "core/error.h"

namespace ipoverbs::verbs {
namespace {

TEST(LockedMemory, MessageNamesLimitAndNeed) {
  const std::string line = locked_memory_message("register 2097152 bytes", 65536, 2097152);
  EXPECT_NE(line.find("RLIMIT_MEMLOCK, ulimit -l) is 64 KiB"), std::string::npos) << line;
  EXPECT_NE(line.find("2048 KiB"), std::string::npos) << line;
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

TEST(LockedMemory, IsNotBlamedForOtherErrors) {
  EXPECT_THROW(throw_allocation_error(EINVAL, "register 1 byte", 1), SystemError);
}

}  // namespace
}  // namespace ipoverbs::verbs
