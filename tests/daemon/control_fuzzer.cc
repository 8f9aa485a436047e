// Any bytes as a control request and as an answer.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "daemon/control.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ipoverbs::daemon;
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(data[i]);
  const auto request = parse_request(text);
  if (request) {
    require(text.ends_with('\n') && size <= kMaxRequest);
  } else {
    require((request.error() == RequestError::Incomplete) ==
            (size < kMaxRequest && !text.contains('\n')));
    require(!parse_answer(format_refusal(request.error())));
  }
  require(parse_answer(format_answer(text)) == text);
  const auto answer = parse_answer(text);
  if (!answer) require(!answer.error().contains('\n') && answer.error().size() < 400);
  return 0;
}
