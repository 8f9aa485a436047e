#include "daemon/control.h"

#include <string>

#include <gtest/gtest.h>

namespace ipoverbs::daemon {
namespace {

TEST(ControlRequest, IsWordsAndANewline) {
  EXPECT_EQ(parse_request("status text\n"), Request::StatusText);
  EXPECT_EQ(parse_request("status json\n"), Request::StatusJson);
  EXPECT_EQ(parse_request("status\n"), Request::StatusJson);
  for (const Request request : {Request::StatusText, Request::StatusJson}) {
    EXPECT_EQ(parse_request(format_request(request)), request);
  }
}

TEST(ControlRequest, RefusesTheRest) {
  const auto error = [](std::string_view text) { return parse_request(text).error(); };
  EXPECT_EQ(error(""), RequestError::Incomplete);
  EXPECT_EQ(error("status"), RequestError::Incomplete);
  EXPECT_EQ(error(std::string(kMaxRequest - 1, 'x')), RequestError::Incomplete);
  EXPECT_EQ(error(std::string(kMaxRequest, 'x')), RequestError::TooLong);
  EXPECT_EQ(error(std::string(kMaxRequest, 'x') + "\n"), RequestError::TooLong);
  EXPECT_EQ(error(std::string(kMaxRequest - 1, 'x') + "\n"), RequestError::Unknown);
  for (const char* bad : {"\n", "stop\n", "status\r\n", "Status\n", "status  text\n", " status\n",
                          "status text \n", "status xml\n"}) {
    EXPECT_EQ(error(bad), RequestError::Unknown) << bad;
  }
  EXPECT_EQ(error(std::string_view("status\0\n", 8)), RequestError::Unknown);
  EXPECT_EQ(error("status\nstatus\n"), RequestError::Trailing);
}

TEST(ControlAnswer, CarriesItsLength) {
  EXPECT_EQ(format_answer("two\nlines\n"), "ok 10\ntwo\nlines\n");
  EXPECT_EQ(parse_answer("ok 10\ntwo\nlines\n"), "two\nlines\n");
  EXPECT_EQ(parse_answer(format_answer("")), "");
}

TEST(ControlAnswer, CutOffOrForeignIsSaid) {
  EXPECT_EQ(parse_answer("").error(), "the answer is cut off");
  EXPECT_EQ(parse_answer("ok 1").error(), "the answer is cut off");
  EXPECT_EQ(parse_answer("ok 10\ntwo\n").error(), "the answer is cut off: 4 bytes of 10");
  EXPECT_EQ(parse_answer("ok 1\nab").error(), "the answer is cut off: 2 bytes of 1");
  EXPECT_EQ(parse_answer("HTTP/1.1 400\n").error(), "'HTTP/1.1 400' is not an answer of ipoverbs");
  EXPECT_EQ(parse_answer("ok x\n").error(), "'ok x' is not an answer of ipoverbs");
  EXPECT_EQ(parse_answer("ok \n").error(), "'ok ' is not an answer of ipoverbs");
  EXPECT_EQ(parse_answer(format_refusal(RequestError::TooLong)).error(),
            "refused: 'the request is too long'");
  EXPECT_EQ(parse_answer(format_refusal(RequestError::Unknown)).error(),
            "refused: 'unknown request; known are 'status text', 'status json''");
}

}  // namespace
}  // namespace ipoverbs::daemon
