// The two ways in which set-up fails. The data path throws neither: it returns enums.
#pragma once

#include <stdexcept>
#include <string>
#include <system_error>

namespace ipoverbs {

// The kernel or a library refused something: errno and a sentence that says what was tried, with
// its names and numbers ("register 2097152 bytes with rxe0"). what() reads "<tried>: <strerror>".
class SystemError : public std::system_error {
 public:
  // `error` is an errno value, positive.
  SystemError(int error, const std::string& tried)
      : std::system_error(error, std::generic_category(), tried) {}
};

// The user asked for something that cannot be: what() is one line that names the option, or file
// and line, and says what would be right. The program ends with exit status 2.
class UsageError : public std::runtime_error {
 public:
  explicit UsageError(const std::string& line) : std::runtime_error(line) {}
};

}  // namespace ipoverbs
