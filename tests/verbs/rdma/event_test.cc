#include <gtest/gtest.h>

#include "verbs/rdma/async_event.h"
#include "verbs/rdma/cm_event.h"

namespace ipoverbs::verbs {
namespace {

TEST(AsyncEvent, MeansWhatWeDoAboutIt) {
  EXPECT_EQ(meaning_of(IBV_EVENT_QP_FATAL), AsyncMeaning::QueuePairFailed);
  EXPECT_EQ(meaning_of(IBV_EVENT_QP_REQ_ERR), AsyncMeaning::QueuePairFailed);
  EXPECT_EQ(meaning_of(IBV_EVENT_QP_ACCESS_ERR), AsyncMeaning::QueuePairFailed);
  EXPECT_EQ(meaning_of(IBV_EVENT_COMM_EST), AsyncMeaning::DataBeforeEstablished);
  EXPECT_EQ(meaning_of(IBV_EVENT_PORT_ERR), AsyncMeaning::PortDown);
  EXPECT_EQ(meaning_of(IBV_EVENT_PORT_ACTIVE), AsyncMeaning::PortActive);
  for (const auto fatal : {IBV_EVENT_DEVICE_FATAL, IBV_EVENT_CQ_ERR, IBV_EVENT_SRQ_ERR}) {
    EXPECT_EQ(meaning_of(fatal), AsyncMeaning::DeviceFailed);
  }
  // A shared receive queue's queue pair reports its last receive; a GID table changes.
  for (const auto harmless : {IBV_EVENT_QP_LAST_WQE_REACHED, IBV_EVENT_SQ_DRAINED,
                              IBV_EVENT_GID_CHANGE, IBV_EVENT_LID_CHANGE, IBV_EVENT_PATH_MIG}) {
    EXPECT_EQ(meaning_of(harmless), AsyncMeaning::Nothing);
  }
}

TEST(CmEvent, NamesTheReasonOfAReject) {
  EXPECT_EQ(reject_reason(8), "nobody listens on the port");
  EXPECT_NE(reject_reason(10).find("stale"), std::string::npos);
  EXPECT_EQ(reject_reason(28), "rejected by the far end's daemon");
  EXPECT_EQ(reject_reason(99), "rejected, reason 99");
  EXPECT_EQ(reject_reason(-111), "Connection refused");
}

}  // namespace
}  // namespace ipoverbs::verbs
