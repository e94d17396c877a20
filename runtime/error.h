// Exceptions of the core and the two macros that raise them. Bindings map each class to Python's class of that name.
#pragma once
#include <cstdint>
#include <exception>
#include <sstream>
#include <string>
#include <utility>

namespace tn {

enum class ErrorKind : uint8_t {
  Runtime,
  Index,
  Type,
  Value,
  NotImplemented,
  LinAlg,
  OutOfMemory,
  Assertion,
  Attribute,
  Key
};

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }
  const std::string& message() const noexcept { return message_; }
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
  std::string message_;
};

// What is not there. A class of its own, since upstream's Python swallows NotImplementedError in places: the door
// counts these.
class Refusal : public Error {
 public:
  explicit Refusal(std::string message) : Error(ErrorKind::NotImplemented, std::move(message)) {}
};

// Joins anything that has operator<<. For messages only, never on a path that succeeds.
template <class... A>
std::string str(const A&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

template <class... A>
[[noreturn, gnu::cold, gnu::noinline]] void fail(ErrorKind kind, const A&... parts) {
  throw Error(kind, str(parts...));
}

}  // namespace tn

// TN_CHECK(condition, message parts...): RuntimeError unless the condition holds.
#define TN_CHECK(condition, ...)                                                              \
  do {                                                                                        \
    if (__builtin_expect(!(condition), 0)) ::tn::fail(::tn::ErrorKind::Runtime, __VA_ARGS__); \
  } while (false)
// The same with another class: TN_CHECK_AS(Index, condition, ...).
#define TN_CHECK_AS(kind, condition, ...)                                                  \
  do {                                                                                     \
    if (__builtin_expect(!(condition), 0)) ::tn::fail(::tn::ErrorKind::kind, __VA_ARGS__); \
  } while (false)
