// Operator schemas: what an operator takes and gives, which arguments alias, what it writes to.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/device.h"
#include "runtime/intrusive.h"
#include "runtime/schema_types.h"

namespace tn {

// Names of alias sets, kept in the order of the schema text as "a|b". The wildcard is "*".
class AliasSet {
 public:
  void add(std::string_view name);
  bool empty() const { return text_.empty(); }
  bool wildcard() const { return contains("*"); }
  bool contains(std::string_view name) const;
  bool intersects(const AliasSet& other) const;
  std::vector<std::string_view> names() const;
  // Equal as sets, whatever the order.
  friend bool operator==(const AliasSet& a, const AliasSet& b);

 private:
  std::string text_;
};

// Tensor(a! -> b): in set a before the call, written to, in set b after it.
struct AliasInfo {
  AliasSet before;
  AliasSet after;
  bool is_write = false;
  // The annotation of a list's elements, when the list has one of its own or must have one.
  std::vector<AliasInfo> contained;

  friend bool operator==(const AliasInfo& a, const AliasInfo& b);
};

// A list of bool whose elements have addresses, which std::vector<bool> denies.
enum class Bit : bool { kFalse = false, kTrue = true };

// std::monostate is None.
using DefaultValue =
    std::variant<std::monostate, bool, int64_t, double, std::complex<double>, std::string, Device, std::vector<int64_t>,
                 std::vector<double>, std::vector<Bit>, std::vector<std::complex<double>>>;

struct Argument {
  std::string name;
  TypePtr type = nullptr;       // with int for ScalarType, Layout, MemoryFormat and SymInt
  TypePtr real_type = nullptr;  // as written
  std::optional<int32_t> size;  // N of int[N]
  bool kwarg_only = false;
  std::optional<DefaultValue> default_value;
  std::unique_ptr<const AliasInfo> alias;

  Argument() = default;
  Argument(Argument&&) noexcept = default;
  Argument& operator=(Argument&&) noexcept = default;
  Argument(const Argument& other);
  Argument& operator=(const Argument& other) { return *this = Argument(other); }

  bool is_write() const { return alias && alias->is_write; }
  bool is_out() const { return kwarg_only && is_write(); }
  std::string str() const;
  void append_str(std::string& out) const;

  friend bool operator==(const Argument& a, const Argument& b);
};

enum class AliasAnalysis : uint8_t { kConservative, kFromSchema, kPureFunction };

class FunctionSchema : public RefCounted {
 public:
  FunctionSchema(std::string name, std::string overload_name, std::vector<Argument> arguments,
                 std::vector<Argument> returns, bool is_vararg, bool is_varret);
  static void destroy(FunctionSchema* schema) noexcept { delete schema; }

  const std::string& name() const { return name_; }  // "aten::add"
  const std::string& overload_name() const { return overload_name_; }
  // "aten" of "aten::add", empty when the name has none.
  std::string_view ns() const;
  const std::vector<Argument>& arguments() const { return arguments_; }
  const std::vector<Argument>& returns() const { return returns_; }
  bool is_vararg() const { return is_vararg_; }
  bool is_varret() const { return is_varret_; }

  bool is_mutable() const;
  // Some argument is aliased without being written to.
  bool is_view_op() const;
  bool has_alias_annotations() const;
  // The kind that a schema stands for once it is registered: its annotations are binding.
  AliasAnalysis alias_analysis() const { return AliasAnalysis::kFromSchema; }
  std::optional<size_t> argument_index(std::string_view name) const;

  std::string str() const;
  size_t hash() const;
  friend bool operator==(const FunctionSchema& a, const FunctionSchema& b);

  // Old calls still work with this schema.
  bool is_backward_compatible_with(const FunctionSchema& old) const;
  // New calls, saved with defaults left out, still work with the old schema. The reason goes to why_not.
  bool is_forward_compatible_with(const FunctionSchema& old, std::string& why_not) const;

 private:
  std::string name_;
  std::string overload_name_;
  std::vector<Argument> arguments_;
  std::vector<Argument> returns_;
  bool is_vararg_;
  bool is_varret_;
};
using SchemaRef = Ref<FunctionSchema>;

// Prints a default as upstream does: "1.", "[0, 1]", "True", "0.10000000000000001".
void append_default(std::string& out, const DefaultValue& value);

}  // namespace tn
