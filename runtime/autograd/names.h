// Names of nodes in errors.
#pragma once
#include <string>
#include <string_view>

#include "runtime/autograd/node.h"

namespace tn {

// The operation whose backward a node is: "Mul" for MulBackward0. Other names stay.
inline std::string forward_name(const Node& node) {
  std::string_view name = node.name();
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
  constexpr std::string_view kEnd = "Backward";
  if (name.size() > kEnd.size() && name.ends_with(kEnd)) return std::string(name.substr(0, name.size() - kEnd.size()));
  return node.name();
}

}  // namespace tn
