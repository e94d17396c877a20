// An argument's default as a tagged argument of a boxed call.
#pragma once

#include "runtime/schema.h"
#include "runtime/value.h"

namespace tn {

// Borrows from `value`, which a schema keeps alive.
inline Arg default_arg(const DefaultValue& value) {
  struct ToArg {
    Arg operator()(std::monostate) const { return Arg(); }
    Arg operator()(const std::string& text) const { return Arg::of(std::string_view(text)); }
    Arg operator()(const std::vector<int64_t>& list) const { return Arg::list(Tag::IntList, list.data(), list.size()); }
    Arg operator()(const std::vector<double>& list) const {
      return Arg::list(Tag::DoubleList, list.data(), list.size());
    }
    Arg operator()(const std::vector<Bit>& list) const { return Arg::list(Tag::BoolList, list.data(), list.size()); }
    // No schema that can be called has such a default.
    Arg operator()(const std::vector<std::complex<double>>&) const { return Arg(); }
    Arg operator()(bool v) const { return Arg::of(v); }
    Arg operator()(int64_t v) const { return Arg::of(v); }
    Arg operator()(double v) const { return Arg::of(v); }
    Arg operator()(std::complex<double> v) const { return Arg::of(v); }
    Arg operator()(Device v) const { return Arg::of(v); }
  };
  return std::visit(ToArg(), value);
}

}  // namespace tn
