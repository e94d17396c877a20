// What a schema says of aliasing and writes, refined by the values of one call.
#pragma once

#include <set>
#include <span>
#include <utility>
#include <vector>

#include "runtime/schema.h"

namespace tn {

struct SchemaSlot {
  enum Side : uint8_t { kInput = 0, kOutput = 1 };
  Side side;
  size_t index;
};

// By the schema alone. Index out of range is a RuntimeError.
bool may_alias(const FunctionSchema& schema, SchemaSlot a, SchemaSlot b);
// Also when one is a container that may hold the other.
bool may_contain_alias(const FunctionSchema& schema, SchemaSlot a, SchemaSlot b);

class SchemaInfo {
 public:
  using Pair = std::pair<size_t, size_t>;

  explicit SchemaInfo(SchemaRef schema);

  const FunctionSchema& schema() const { return *schema_; }
  // Facts on the values given so far: argument pairs that share memory, pairs of a container and what lies in it, and
  // the flag that says whether a normalisation updates its statistics (nullopt: not given).
  void set_values(std::span<const Pair> aliases, std::span<const Pair> contains, std::optional<bool> training);

  bool is_mutable() const;
  bool is_mutable(SchemaSlot slot) const;
  bool may_alias(SchemaSlot a, SchemaSlot b) const;
  bool may_contain_alias(SchemaSlot a, SchemaSlot b) const;

 private:
  struct Side {
    std::vector<std::set<size_t>> aliases;  // for each slot the inputs that it may share memory with
    std::set<size_t> wildcards;
    std::set<size_t> containers;
  };
  void init_side(SchemaSlot::Side side);
  bool may_contain(SchemaSlot container, SchemaSlot item) const;

  SchemaRef schema_;
  Side sides_[2];
  std::optional<bool> training_;
};

}  // namespace tn
