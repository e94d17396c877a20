#include "runtime/schema_info.h"

#include <algorithm>

#include "runtime/error.h"

namespace tn {
namespace {

using Types = std::vector<TypePtr>;

const std::vector<Argument>& side_of(const FunctionSchema& schema, SchemaSlot::Side side) {
  return side == SchemaSlot::kInput ? schema.arguments() : schema.returns();
}

const Argument& argument_at(const FunctionSchema& schema, SchemaSlot slot) {
  const std::vector<Argument>& list = side_of(schema, slot.side);
  TN_CHECK(slot.index < list.size(), "SchemaInfo: expected an index below ", list.size(), ", got ", slot.index);
  return list[slot.index];
}

// The types whose values have an identity: what may alias maps to equal entries. Empty when nothing can.
Types alias_types(TypePtr type) {
  switch (type->kind()) {
    case TypeKind::kList:
    case TypeKind::kDict:
    case TypeKind::kClass:
    case TypeKind::kTensor:
    case TypeKind::kAny: return {type};
    case TypeKind::kOptional: return alias_types(type->element());
    case TypeKind::kUnion:
    case TypeKind::kTuple: {
      Types found;
      for (TypePtr member : type->contained()) {
        Types inner = alias_types(member);
        found.insert(found.end(), inner.begin(), inner.end());
      }
      return found.empty() || type->kind() == TypeKind::kUnion ? found : Types{tuple_type(found)};
    }
    default: return {};
  }
}

void add_contained(TypePtr type, Types& out) {
  for (TypePtr inner : type->contained()) {
    if (std::find(out.begin(), out.end(), inner) != out.end()) continue;
    out.push_back(inner);
    add_contained(inner, out);
  }
}

Types contained_types(const Types& types) {
  Types out;
  for (TypePtr type : types) add_contained(type, out);
  return out;
}

// Upstream compares addresses of types, so only those that it keeps once are the same in two arguments, and a tuple,
// which it builds for each question, is not even itself.
bool has_identity(TypePtr type, bool same_argument) {
  switch (type->kind()) {
    case TypeKind::kTuple: return false;
    case TypeKind::kClass: return true;
    case TypeKind::kVar: return same_argument;
    default: return same_argument || type->contained().empty();
  }
}

bool intersect(const Types& a, const Types& b, bool same_argument) {
  return std::any_of(a.begin(), a.end(), [&](TypePtr type) {
    return has_identity(type, same_argument) && std::find(b.begin(), b.end(), type) != b.end();
  });
}

bool wildcard_after(const Argument& argument) { return argument.alias && argument.alias->after.wildcard(); }

// Normalisations write their statistics in training only, which their schemas don't say.
constexpr std::string_view kTrainingOps[] = {
    "aten::batch_norm",       "aten::instance_norm",     "aten::_batch_norm_impl_index",
    "aten::cudnn_batch_norm", "aten::miopen_batch_norm", "aten::native_batch_norm"};

bool written_in_training(const FunctionSchema& schema, const Argument& argument) {
  if (argument.name != "running_mean" && argument.name != "running_var") return false;
  if (schema.overload_name() == "out") return schema.name() == "aten::native_batch_norm";
  return schema.overload_name().empty() &&
         std::find(std::begin(kTrainingOps), std::end(kTrainingOps), schema.name()) != std::end(kTrainingOps);
}

}  // namespace

bool may_alias(const FunctionSchema& schema, SchemaSlot a, SchemaSlot b) {
  const Argument& left = argument_at(schema, a);
  const Argument& right = argument_at(schema, b);
  return left.alias && right.alias && left.alias->after.intersects(right.alias->after) &&
         intersect(alias_types(left.type), alias_types(right.type), &left == &right);
}

bool may_contain_alias(const FunctionSchema& schema, SchemaSlot a, SchemaSlot b) {
  if (may_alias(schema, a, b)) return true;
  const Argument& left = argument_at(schema, a);
  const Argument& right = argument_at(schema, b);
  Types left_types = alias_types(left.type), right_types = alias_types(right.type);
  Types left_inner = contained_types(left_types), right_inner = contained_types(right_types);
  bool same = &left == &right;
  return (wildcard_after(left) && intersect(left_types, right_inner, same)) ||
         (wildcard_after(right) && intersect(right_types, left_inner, same)) ||
         intersect(left_inner, right_inner, same);
}

SchemaInfo::SchemaInfo(SchemaRef schema) : schema_(std::move(schema)) { set_values({}, {}, std::nullopt); }

void SchemaInfo::init_side(SchemaSlot::Side side) {
  const std::vector<Argument>& arguments = side_of(*schema_, side);
  Side& out = sides_[side];
  out = Side();
  out.aliases.resize(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (wildcard_after(arguments[i])) out.wildcards.insert(i);
    if (!contained_types(alias_types(arguments[i].type)).empty()) out.containers.insert(i);
    // A set that several arguments of one side share is treated as the wildcard on both sides, to be safe.
    for (size_t j = 0; j < i; ++j) {
      if (!arguments[i].alias || !arguments[j].alias || wildcard_after(arguments[i]) || wildcard_after(arguments[j]))
        continue;
      if (!arguments[i].alias->after.intersects(arguments[j].alias->after)) continue;
      out.wildcards.insert({i, j});
    }
  }
}

void SchemaInfo::set_values(std::span<const Pair> aliases, std::span<const Pair> contains,
                            std::optional<bool> training) {
  init_side(SchemaSlot::kInput);
  init_side(SchemaSlot::kOutput);
  training_ = training;
  Side& inputs = sides_[SchemaSlot::kInput];
  Side& outputs = sides_[SchemaSlot::kOutput];
  const std::vector<Argument>& arguments = schema_->arguments();
  const std::vector<Argument>& returns = schema_->returns();
  // The shared set's other members, on the other side too.
  for (int side = 0; side < 2; ++side) {
    const std::vector<Argument>& here = side ? returns : arguments;
    const std::vector<Argument>& there = side ? arguments : returns;
    std::vector<size_t> shared(sides_[side].wildcards.begin(), sides_[side].wildcards.end());
    for (size_t i : shared) {
      if (wildcard_after(here[i])) continue;
      for (size_t j = 0; j < there.size(); ++j) {
        if (there[j].alias && there[j].alias->after.intersects(here[i].alias->after))
          sides_[1 - side].wildcards.insert(j);
      }
    }
  }
  for (size_t i = 0; i < arguments.size(); ++i) inputs.aliases[i].insert(i);
  for (auto [i, j] : aliases) {
    inputs.aliases[i].insert(j);
    inputs.aliases[j].insert(i);
    if (inputs.wildcards.count(i)) {
      inputs.wildcards.insert(j);
    } else if (inputs.wildcards.count(j)) {
      inputs.wildcards.insert(i);
    }
  }
  for (auto [container, item] : contains) {
    if (!inputs.aliases[container].count(item)) inputs.wildcards.insert(item);
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    for (size_t j = 0; j < returns.size(); ++j) {
      if (!tn::may_alias(*schema_, {SchemaSlot::kInput, i}, {SchemaSlot::kOutput, j})) continue;
      if (inputs.wildcards.count(i)) outputs.wildcards.insert(j);
      outputs.aliases[j].insert(inputs.aliases[i].begin(), inputs.aliases[i].end());
    }
  }
}

bool SchemaInfo::is_mutable() const {
  for (size_t i = 0; i < schema_->arguments().size(); ++i) {
    if (is_mutable({SchemaSlot::kInput, i})) return true;
  }
  return false;
}

bool SchemaInfo::is_mutable(SchemaSlot slot) const {
  argument_at(*schema_, slot);
  const std::set<size_t>& inputs = sides_[slot.side].aliases[slot.index];
  return std::any_of(inputs.begin(), inputs.end(), [&](size_t index) {
    const Argument& argument = schema_->arguments()[index];
    return written_in_training(*schema_, argument) ? training_.value_or(true) : argument.is_write();
  });
}

bool SchemaInfo::may_alias(SchemaSlot a, SchemaSlot b) const {
  if (tn::may_alias(*schema_, a, b)) return true;
  const Argument& left_argument = argument_at(*schema_, a);
  const Argument& right_argument = argument_at(*schema_, b);
  bool same = &left_argument == &right_argument;
  if (!intersect(alias_types(left_argument.type), alias_types(right_argument.type), same)) return false;
  if (sides_[a.side].wildcards.count(a.index) && sides_[b.side].wildcards.count(b.index)) return true;
  if (a.side == SchemaSlot::kInput) std::swap(a, b);
  const std::set<size_t>& left = sides_[a.side].aliases[a.index];
  if (b.side == SchemaSlot::kInput) return left.count(b.index) != 0;
  const std::set<size_t>& right = sides_[b.side].aliases[b.index];
  return std::any_of(left.begin(), left.end(), [&](size_t input) { return right.count(input) != 0; });
}

bool SchemaInfo::may_contain(SchemaSlot container, SchemaSlot item) const {
  const Argument& outer = argument_at(*schema_, container);
  const Argument& inner = argument_at(*schema_, item);
  return sides_[container.side].containers.count(container.index) && sides_[item.side].wildcards.count(item.index) &&
         intersect(contained_types(alias_types(outer.type)), alias_types(inner.type), &outer == &inner);
}

bool SchemaInfo::may_contain_alias(SchemaSlot a, SchemaSlot b) const {
  return tn::may_contain_alias(*schema_, a, b) || may_alias(a, b) || may_contain(a, b) || may_contain(b, a);
}

}  // namespace tn
