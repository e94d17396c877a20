#include "runtime/schema.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "runtime/error.h"

namespace tn {
namespace {

template <class F>
void for_each_name(std::string_view text, F&& use) {
  while (!text.empty()) {
    size_t bar = std::min(text.find('|'), text.size());
    use(text.substr(0, bar));
    text.remove_prefix(std::min(bar + 1, text.size()));
  }
}

// Upstream keeps alias sets in a hash set that yields the latest entry first.
void append_set(std::string& out, const AliasSet& set) {
  std::vector<std::string_view> names = set.names();
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    if (name != names.rbegin()) out += '|';
    out += *name;
  }
}

void append_alias(std::string& out, const AliasInfo& alias) {
  out += '(';
  append_set(out, alias.before);
  if (alias.is_write) out += '!';
  if (alias.before != alias.after) {
    out += " -> ";
    append_set(out, alias.after);
  }
  out += ')';
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (char c : text) {
    switch (c) {
      case '\\': out += "\\\\"; break;
      case '\'': out += "\\'"; break;
      case '"': out += "\\\""; break;
      case '\a': out += "\\a"; break;
      case '\b': out += "\\b"; break;
      case '\f': out += "\\f"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      case '\v': out += "\\v"; break;
      default:
        if (c >= ' ' && c <= '~') {
          out += c;
        } else {
          char octal[5];
          std::snprintf(octal, sizeof octal, "\\%03o", static_cast<unsigned>(static_cast<unsigned char>(c)));
          out += octal;
        }
    }
  }
  out += '"';
}

void append_double(std::string& out, double value) {
  constexpr double kInt64Limit = 9223372036854775808.0;
  if (std::abs(value) < kInt64Limit && std::trunc(value) == value) {
    out += std::to_string(static_cast<int64_t>(value));
    out += '.';
    return;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  out += text;
}

void append_value(std::string& out, std::monostate) { out += "None"; }
void append_value(std::string& out, bool value) { out += value ? "True" : "False"; }
void append_value(std::string& out, Bit value) { append_value(out, value == Bit::kTrue); }
void append_value(std::string& out, int64_t value) { out += std::to_string(value); }
void append_value(std::string& out, double value) { append_double(out, value); }
void append_value(std::string& out, const std::complex<double>& value) {
  append_double(out, value.real());
  out += value.imag() >= 0 ? '+' : '-';
  append_double(out, std::abs(value.imag()));
  out += 'j';
}
void append_value(std::string& out, const std::string& value) { out += value; }
void append_value(std::string& out, Device value) { out += value.str(); }
template <class T>
void append_value(std::string& out, const std::vector<T>& values) {
  out += '[';
  bool first = true;
  for (auto&& value : values) {
    if (!first) out += ", ";
    first = false;
    append_value(out, static_cast<T>(value));
  }
  out += ']';
}

// "int[2] x=1" stands for [1, 1]; upstream prints it so for lists of int proper only, not of SymInt.
bool prints_as_scalar(const Argument& argument) {
  if (argument.real_type->kind() != TypeKind::kList || argument.real_type->element()->kind() != TypeKind::kInt)
    return false;
  const auto* values = std::get_if<std::vector<int64_t>>(&*argument.default_value);
  return values && values->size() > 1 &&
         std::all_of(values->begin(), values->end(), [&](int64_t value) { return value == values->front(); });
}

bool same_alias(const Argument& a, const Argument& b) {
  return (!a.alias && !b.alias) || (a.alias && b.alias && *a.alias == *b.alias);
}

bool argument_is_backward_compatible(const Argument& now, const Argument& old) {
  return now.name == old.name && now.size == old.size && same_alias(now, old) && (!now.kwarg_only || old.kwarg_only) &&
         old.type->is_subtype_of(now.type) && (!old.default_value || now.default_value == old.default_value);
}

bool argument_is_forward_compatible(const Argument& now, const Argument& old) {
  return now.name == old.name && now.size == old.size && same_alias(now, old) && (!now.kwarg_only || old.kwarg_only) &&
         now.type->is_subtype_of(old.type) && (!old.default_value || now.default_value == old.default_value);
}

size_t first_out(const std::vector<Argument>& arguments) {
  auto out = std::find_if(arguments.begin(), arguments.end(), [](const Argument& a) { return a.is_out(); });
  return static_cast<size_t>(out - arguments.begin());
}

bool is_container(const DefaultValue& value) {
  return std::holds_alternative<std::vector<int64_t>>(value) || std::holds_alternative<std::vector<double>>(value) ||
         std::holds_alternative<std::vector<Bit>>(value) ||
         std::holds_alternative<std::vector<std::complex<double>>>(value);
}

}  // namespace

void AliasSet::add(std::string_view name) {
  if (contains(name)) return;
  if (!text_.empty()) text_ += '|';
  text_ += name;
}

bool AliasSet::contains(std::string_view name) const {
  bool found = false;
  for_each_name(text_, [&](std::string_view each) { found |= each == name; });
  return found;
}

bool AliasSet::intersects(const AliasSet& other) const {
  bool found = false;
  for_each_name(text_, [&](std::string_view each) { found |= other.contains(each); });
  return found;
}

std::vector<std::string_view> AliasSet::names() const {
  std::vector<std::string_view> names;
  for_each_name(text_, [&](std::string_view name) { names.push_back(name); });
  return names;
}

bool operator==(const AliasSet& a, const AliasSet& b) {
  if (a.text_ == b.text_) return true;
  if (a.text_.size() != b.text_.size()) return false;
  bool all = true;
  for_each_name(a.text_, [&](std::string_view name) { all &= b.contains(name); });
  return all;
}

bool operator==(const AliasInfo& a, const AliasInfo& b) {
  return a.is_write == b.is_write && a.before == b.before && a.after == b.after && a.contained == b.contained;
}

Argument::Argument(const Argument& other)
    : name(other.name),
      type(other.type),
      real_type(other.real_type),
      size(other.size),
      kwarg_only(other.kwarg_only),
      default_value(other.default_value),
      alias(other.alias ? std::make_unique<AliasInfo>(*other.alias) : nullptr) {}

bool operator==(const Argument& a, const Argument& b) {
  return a.name == b.name && a.type == b.type && a.size == b.size && a.kwarg_only == b.kwarg_only &&
         a.default_value == b.default_value && same_alias(a, b);
}

void append_default(std::string& out, const DefaultValue& value) {
  std::visit([&](const auto& alternative) { append_value(out, alternative); }, value);
}

void Argument::append_str(std::string& out) const {
  bool is_optional = real_type->kind() == TypeKind::kOptional;
  TypePtr shown = is_optional ? real_type->element() : real_type;
  // The annotation stands before the question mark: "Tensor(a!)?", also for lists and their elements.
  if (shown->kind() == TypeKind::kList) {
    shown->element()->append_schema(out);
    if (alias && !alias->contained.empty()) append_alias(out, alias->contained[0]);
    out += '[';
    if (size) out += std::to_string(*size);
    out += ']';
  } else {
    shown->append_schema(out);
  }
  if (alias && !alias->before.empty()) append_alias(out, *alias);
  if (is_optional) out += '?';
  if (!name.empty()) {
    out += ' ';
    out += name;
  }
  if (!default_value) return;
  out += '=';
  const auto* text = std::get_if<std::string>(&*default_value);
  if (text && shown->kind() == TypeKind::kString) {
    append_quoted(out, *text);
  } else if (prints_as_scalar(*this)) {
    append_value(out, std::get<std::vector<int64_t>>(*default_value).front());
  } else {
    append_default(out, *default_value);
  }
}

std::string Argument::str() const {
  std::string out;
  append_str(out);
  return out;
}

FunctionSchema::FunctionSchema(std::string name, std::string overload_name, std::vector<Argument> arguments,
                               std::vector<Argument> returns, bool is_vararg, bool is_varret)
    : name_(std::move(name)),
      overload_name_(std::move(overload_name)),
      arguments_(std::move(arguments)),
      returns_(std::move(returns)),
      is_vararg_(is_vararg),
      is_varret_(is_varret) {
  bool seen_default = false;
  for (const Argument& argument : arguments_) {
    if (argument.default_value) {
      seen_default = true;
    } else {
      // Lists without a default may follow: upstream has such schemas in saved programs.
      TN_CHECK(!seen_default || argument.kwarg_only || argument.type->kind() == TypeKind::kList,
               "Non-default positional argument follows default argument. Parameter ", argument.name, " in ", str());
    }
  }
}

std::string_view FunctionSchema::ns() const {
  size_t colon = name_.find("::");
  return colon == std::string::npos ? std::string_view() : std::string_view(name_).substr(0, colon);
}

bool FunctionSchema::is_mutable() const {
  return std::any_of(arguments_.begin(), arguments_.end(), [](const Argument& a) { return a.is_write(); });
}

bool FunctionSchema::is_view_op() const {
  return std::any_of(arguments_.begin(), arguments_.end(),
                     [](const Argument& a) { return a.alias && !a.alias->is_write; });
}

bool FunctionSchema::has_alias_annotations() const {
  auto annotated = [](const Argument& a) { return a.alias != nullptr; };
  return std::any_of(arguments_.begin(), arguments_.end(), annotated) ||
         std::any_of(returns_.begin(), returns_.end(), annotated);
}

std::optional<size_t> FunctionSchema::argument_index(std::string_view name) const {
  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (arguments_[i].name == name) return i;
  }
  return std::nullopt;
}

std::string FunctionSchema::str() const {
  std::string out = name_;
  if (!overload_name_.empty()) (out += '.') += overload_name_;
  out += '(';
  bool seen_kwarg_only = false;
  for (const Argument& argument : arguments_) {
    if (&argument != arguments_.data()) out += ", ";
    if (argument.kwarg_only && !seen_kwarg_only) {
      out += "*, ";
      seen_kwarg_only = true;
    }
    argument.append_str(out);
  }
  if (is_vararg_) out += arguments_.empty() ? "..." : ", ...";
  out += ") -> ";

  std::string given;
  for (const Argument& result : returns_) {
    if (&result != returns_.data()) given += ", ";
    result.append_str(given);
  }
  if (is_varret_) given += returns_.empty() ? "..." : ", ...";
  // One item stands bare, unless it starts with a parenthesis, which would read as a list of results.
  bool bare = returns_.size() + (is_varret_ ? 1 : 0) == 1 && given[0] != '(';
  return bare ? out + given : out + '(' + given + ')';
}

size_t FunctionSchema::hash() const {
  size_t seed = std::hash<std::string>()(name_);
  auto mix = [&](size_t value) { seed ^= value + 0x9e3779b97f4a7c15u + (seed << 6) + (seed >> 2); };
  mix(std::hash<std::string>()(overload_name_));
  for (const std::vector<Argument>* list : {&arguments_, &returns_}) {
    for (const Argument& argument : *list) {
      mix(std::hash<std::string>()(argument.name));
      mix(std::hash<TypePtr>()(argument.type));
      mix(argument.kwarg_only);
    }
  }
  return seed;
}

bool operator==(const FunctionSchema& a, const FunctionSchema& b) {
  return &a == &b || (a.name_ == b.name_ && a.overload_name_ == b.overload_name_ && a.arguments_ == b.arguments_ &&
                      a.returns_ == b.returns_ && a.is_vararg_ == b.is_vararg_ && a.is_varret_ == b.is_varret_);
}

bool FunctionSchema::is_backward_compatible_with(const FunctionSchema& old) const {
  if (name_ != old.name_ || overload_name_ != old.overload_name_ || is_vararg_ != old.is_vararg_ ||
      is_varret_ != old.is_varret_ || returns_.size() != old.returns_.size() ||
      arguments_.size() < old.arguments_.size()) {
    return false;
  }
  // Results may become more special, arguments more general.
  for (size_t i = 0; i < returns_.size(); ++i) {
    if (!argument_is_backward_compatible(old.returns_[i], returns_[i])) return false;
  }
  size_t old_outs = first_out(old.arguments_), outs = first_out(arguments_);
  if (outs < old_outs || arguments_.size() - outs < old.arguments_.size() - old_outs) return false;
  for (size_t i = 0; i < old_outs; ++i) {
    if (!argument_is_backward_compatible(arguments_[i], old.arguments_[i])) return false;
  }
  for (size_t i = old_outs; i < outs; ++i) {
    if (!arguments_[i].default_value) return false;
  }
  for (size_t i = old_outs; i < old.arguments_.size(); ++i) {
    if (!argument_is_backward_compatible(arguments_[i - old_outs + outs], old.arguments_[i])) return false;
  }
  return true;
}

bool FunctionSchema::is_forward_compatible_with(const FunctionSchema& old, std::string& why_not) const {
  if (name_ != old.name_ || overload_name_ != old.overload_name_ || is_vararg_ != old.is_vararg_ ||
      is_varret_ != old.is_varret_ || returns_.size() != old.returns_.size()) {
    return false;
  }
  size_t old_outs = first_out(old.arguments_), outs = first_out(arguments_);
  if (old.arguments_.size() - old_outs != arguments_.size() - outs) {
    why_not += "Function schema should have the same number of out arguments";
    return false;
  }
  auto check = [&](const Argument& now, const Argument& before) {
    if (argument_is_forward_compatible(now, before)) return true;
    why_not += "'" + now.name + "' is not forward compatible with the older version of the schema";
    return false;
  };
  for (size_t i = 0; i < std::min(old_outs, outs); ++i) {
    if (!check(arguments_[i], old.arguments_[i])) return false;
  }
  for (size_t i = old_outs; i < outs; ++i) {
    const Argument& added = arguments_[i];
    std::string_view fault = !added.default_value                 ? " did not provide a default value."
                             : is_container(*added.default_value) ? " has a container type as its default value."
                                                                  : "";
    if (fault.empty()) continue;
    why_not += "Function schema is not forward compatible since the new argument '" + added.name + "' of type " +
               added.type->str();
    why_not += fault;
    return false;
  }
  for (size_t i = outs; i < arguments_.size(); ++i) {
    if (!check(arguments_[i], old.arguments_[i - outs + old_outs])) return false;
  }
  return true;
}

}  // namespace tn
