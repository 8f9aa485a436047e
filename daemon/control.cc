#include "daemon/control.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "daemon/settings.h"

namespace ipoverbs::daemon {

namespace {

constexpr std::array<std::pair<std::string_view, Request>, 3> kRequests{{
    {"status text\n", Request::StatusText},
    {"status json\n", Request::StatusJson},
    {"status\n", Request::StatusJson},
}};

std::string_view describe(RequestError error) {
  switch (error) {
    case RequestError::Incomplete:
      return "the request does not end with a newline";
    case RequestError::TooLong:
      return "the request is too long";
    case RequestError::Unknown:
      return "unknown request; known are 'status text', 'status json'";
    case RequestError::Trailing:
      return "more than one request";
  }
  return "";
}

}  // namespace

std::expected<Request, RequestError> parse_request(std::string_view received) noexcept {
  const std::size_t newline = received.substr(0, kMaxRequest).find('\n');
  if (newline == std::string_view::npos) {
    return std::unexpected(received.size() < kMaxRequest ? RequestError::Incomplete
                                                         : RequestError::TooLong);
  }
  if (newline + 1 != received.size()) return std::unexpected(RequestError::Trailing);
  for (const auto& [text, request] : kRequests) {
    if (text == received) return request;
  }
  return std::unexpected(RequestError::Unknown);
}

std::string_view format_request(Request request) noexcept {
  return std::ranges::find(kRequests, request, &decltype(kRequests)::value_type::second)->first;
}

std::string format_answer(std::string_view text) {
  return fmt::format("ok {}\n{}", text.size(), text);
}

std::string format_refusal(RequestError error) {
  return fmt::format("error {}\n", describe(error));
}

std::expected<std::string, std::string> parse_answer(std::string_view received) {
  constexpr std::string_view kOk = "ok ";
  constexpr std::string_view kError = "error ";
  const std::size_t newline = received.find('\n');
  if (newline == std::string_view::npos) return std::unexpected("the answer is cut off");
  const std::string_view head = received.substr(0, newline);
  const std::string_view text = received.substr(newline + 1);
  if (head.starts_with(kError)) {
    return std::unexpected(fmt::format("refused: {}", quote(head.substr(kError.size()))));
  }
  std::size_t size = 0;
  const char* const end = head.data() + head.size();
  if (!head.starts_with(kOk) ||
      std::from_chars(head.data() + kOk.size(), end, size) != std::from_chars_result{end, {}}) {
    return std::unexpected(fmt::format("{} is not an answer of ipoverbs", quote(head)));
  }
  if (text.size() != size) {
    return std::unexpected(fmt::format("the answer is cut off: {} bytes of {}", text.size(), size));
  }
  return std::string(text);
}

}  // namespace ipoverbs::daemon
