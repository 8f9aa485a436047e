// The control protocol between `ipoverbs status` and a daemon, as pure functions.
//
// Over a UNIX stream socket the client sends one request, words separated by single blanks and
// ended by a newline, and the daemon answers once and closes:
//
//   request   "status text\n"   for people
//             "status json\n"   for programs; "status\n" is the same
//   answer    "ok <n>\n" and n bytes of text, or "error <why>\n"
//
// A request has at most kMaxRequest bytes. Whatever else comes is refused; nothing that a client
// sends changes anything in the daemon.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace ipoverbs::daemon {

inline constexpr std::size_t kMaxRequest = 64;  // bytes, newline included

enum class Request : std::uint8_t { StatusText, StatusJson };

enum class RequestError : std::uint8_t {
  Incomplete,  // no newline yet: read on
  TooLong,     // no newline within kMaxRequest bytes
  Unknown,     // no request that we know
  Trailing,    // bytes behind the newline
};

// `received`: all bytes so far.
[[nodiscard]] std::expected<Request, RequestError> parse_request(
    std::string_view received) noexcept;

[[nodiscard]] std::string_view format_request(Request request) noexcept;

[[nodiscard]] std::string format_answer(std::string_view text);
[[nodiscard]] std::string format_refusal(RequestError error);

// The text of a whole answer; the unexpected value is one line that says what the daemon refused,
// or that the answer is cut off.
[[nodiscard]] std::expected<std::string, std::string> parse_answer(std::string_view received);

}  // namespace ipoverbs::daemon
