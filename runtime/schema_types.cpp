#include "runtime/schema_types.h"

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "runtime/error.h"

namespace tn {
namespace {

constexpr std::string_view kKindNames[kTypeKindCount] = {
    "AnyType",        "EnumType",     "AnyEnumType",      "TensorType",  "StorageType",   "TupleType",
    "ListType",       "DictType",     "NumberType",       "FloatType",   "ComplexType",   "FutureType",
    "AwaitType",      "RRefType",     "IntType",          "NoneType",    "StringType",    "GeneratorType",
    "QuantizerType",  "BoolType",     "OptionalType",     "VarType",     "DeviceObjType", "StreamObjType",
    "FunctionType",   "ClassType",    "PyObjectType",     "CapsuleType", "InterfaceType", "QSchemeType",
    "ScalarTypeType", "LayoutType",   "MemoryFormatType", "AnyListType", "AnyTupleType",  "AnyClassType",
    "SymIntType",     "SymFloatType", "SymBoolType",      "UnionType",
};

// The text in a schema of each simple kind; empty for the kinds that take parameters.
constexpr std::string_view kSimpleText[kTypeKindCount] = {
    "Any",        "",         "AnyEnumType",
    "Tensor",     "Storage",  "",
    "",           "",         "Scalar",
    "float",      "complex",  "",
    "",           "",         "int",
    "NoneType",   "str",      "Generator",
    "Quantizer",  "bool",     "",
    "",           "Device",   "Stream",
    "",           "",         "PyObject",
    "Capsule",    "",         "QScheme",
    "ScalarType", "Layout",   "MemoryFormat",
    "list",       "tuple",    "AnyClassType",
    "SymInt",     "SymFloat", "SymBool",
    "",
};

template <size_t... I>
constexpr std::array<Type, kTypeKindCount> make_simple(std::index_sequence<I...>) {
  return {{Type(static_cast<TypeKind>(I), kSimpleText[I])...}};
}
constinit std::array<Type, kTypeKindCount> simple_types = make_simple(std::make_index_sequence<kTypeKindCount>());

const Type& simple(TypeKind kind) { return simple_types[static_cast<size_t>(kind)]; }

// The C++ classes that upstream registers for TorchScript. Without libraries of C++ classes the set is closed.
constexpr std::string_view kClassPrefix = "__torch__.torch.classes.";
constexpr std::string_view kClasses[] = {
    "_nnapi.Compilation",
    "aten.OpaqueObject",
    "backendutils.BackendDebugInfo",
    "c10d.ProcessGroup",
    "c10d.ReduceOp",
    "c10d.SymmetricMemory",
    "c10d.Work",
    "dist_rpc.WorkerInfo",
    "mkldnn.ConvOpContext",
    "profiler._RecordFunction",
    "profiling.InstructionStats",
    "profiling.SourceRef",
    "profiling.SourceStats",
    "profiling._ScriptProfile",
    "quantized.Conv2dPackedParamsBase",
    "quantized.Conv3dPackedParamsBase",
    "quantized.EmbeddingPackedParamsBase",
    "quantized.LinearPackedParamsBase",
    "rnn.CellParamsBase",
    "sparse.LinearPackedParamsBase",
};

// Types are immortal, so the table only grows; the key holds kind, name and member addresses as bytes.
struct Interned {
  std::mutex mutex;
  std::unordered_map<std::string, TypePtr> by_key;
  std::deque<Type> types;
  std::deque<std::vector<TypePtr>> members;
  std::deque<std::string> names;
};

Interned& interned() {
  static Interned* table = new Interned;
  return *table;
}

TypePtr intern(TypeKind kind, std::string_view name, std::span<const TypePtr> contained) {
  std::string key(1, static_cast<char>(kind));
  key.append(name);
  key.push_back('\0');
  key.append(reinterpret_cast<const char*>(contained.data()), contained.size_bytes());
  Interned& table = interned();
  std::lock_guard lock(table.mutex);
  auto [slot, is_new] = table.by_key.try_emplace(std::move(key), nullptr);
  if (is_new) {
    const std::vector<TypePtr>& kept = table.members.emplace_back(contained.begin(), contained.end());
    const std::string& kept_name = table.names.emplace_back(name);
    slot->second = &table.types.emplace_back(kind, kept_name, kept);
  }
  return slot->second;
}

TypePtr intern_one(TypeKind kind, TypePtr element) { return intern(kind, {}, std::span(&element, 1)); }

using Append = void (Type::*)(std::string&) const;

void append_joined(std::string& out, std::span<const TypePtr> types, Append append) {
  bool first = true;
  for (TypePtr type : types) {
    if (!first) out += ", ";
    first = false;
    (type->*append)(out);
  }
}

bool is_subtype_of_any(TypePtr type, std::span<const TypePtr> options) {
  return std::any_of(options.begin(), options.end(), [&](TypePtr option) { return type->is_subtype_of(option); });
}

// A number inside a Union is spelled as its three kinds.
constexpr TypeKind kNumberKinds[] = {TypeKind::kFloat, TypeKind::kComplex, TypeKind::kInt};

bool holds_number(std::span<const TypePtr> types) {
  return std::all_of(std::begin(kNumberKinds), std::end(kNumberKinds), [&](TypeKind kind) {
    return std::find(types.begin(), types.end(), &simple(kind)) != types.end();
  });
}

bool contains_none(std::span<const TypePtr> types) {
  return std::find(types.begin(), types.end(), &simple(TypeKind::kNone)) != types.end();
}

void flatten_union(std::span<const TypePtr> members, std::vector<TypePtr>& out) {
  for (TypePtr member : members) {
    if (member->kind() == TypeKind::kUnion) {
      flatten_union(member->contained(), out);
    } else if (member->kind() == TypeKind::kOptional) {
      flatten_union(member->contained(), out);
      out.push_back(&simple(TypeKind::kNone));
    } else if (member->kind() == TypeKind::kNumber) {
      for (TypeKind kind : kNumberKinds) out.push_back(&simple(kind));
    } else {
      out.push_back(member);
    }
  }
}

// A Union's members; the three kinds of number, when all are there, print as one at the end.
void append_members(std::string& out, std::span<const TypePtr> types, Append append, const Type& number) {
  if (!holds_number(types)) return append_joined(out, types, append);
  std::vector<TypePtr> shown;
  for (TypePtr type : types) {
    if (!type->is_subtype_of(&number)) shown.push_back(type);
  }
  shown.push_back(&number);
  append_joined(out, shown, append);
}

}  // namespace

std::string_view kind_name(TypeKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

TypePtr simple_type(TypeKind kind) {
  const Type& type = simple(kind);
  return type.name().empty() ? nullptr : &type;
}

TypePtr list_type(TypePtr element) {
  TypePtr found = element->list_.load(std::memory_order_acquire);
  if (!found) {
    found = intern_one(TypeKind::kList, element);
    element->list_.store(found, std::memory_order_release);
  }
  return found;
}

TypePtr optional_type(TypePtr element) {
  TypePtr found = element->optional_.load(std::memory_order_acquire);
  if (!found) {
    if (element->kind() == TypeKind::kOptional || element->kind() == TypeKind::kNone) {
      found = element;
    } else if (element->kind() == TypeKind::kUnion && contains_none(element->contained())) {
      std::vector<TypePtr> others(element->contained().begin(), element->contained().end());
      std::erase(others, &simple(TypeKind::kNone));
      found = intern_one(TypeKind::kOptional, union_type(others));
    } else {
      found = intern_one(TypeKind::kOptional, element);
    }
    element->optional_.store(found, std::memory_order_release);
  }
  return found;
}

TypePtr dict_type(TypePtr key, TypePtr value) {
  TypePtr pair[] = {key, value};
  return intern(TypeKind::kDict, {}, pair);
}
TypePtr tuple_type(std::span<const TypePtr> elements) { return intern(TypeKind::kTuple, {}, elements); }
TypePtr future_type(TypePtr element) { return intern_one(TypeKind::kFuture, element); }
TypePtr await_type(TypePtr element) { return intern_one(TypeKind::kAwait, element); }
TypePtr rref_type(TypePtr element) { return intern_one(TypeKind::kRRef, element); }
TypePtr var_type(std::string_view name) { return intern(TypeKind::kVar, name, {}); }
TypePtr class_type(std::string_view qualified_name) {
  // A C++ class has one attribute, the capsule that holds it.
  TypePtr capsule = &simple(TypeKind::kCapsule);
  return intern(TypeKind::kClass, qualified_name, std::span(&capsule, 1));
}

bool known_class(std::string_view qualified_name) {
  if (!qualified_name.starts_with(kClassPrefix)) return false;
  qualified_name.remove_prefix(kClassPrefix.size());
  return std::binary_search(std::begin(kClasses), std::end(kClasses), qualified_name);
}

TypePtr union_type(std::span<const TypePtr> members) {
  std::vector<TypePtr> flat;
  flatten_union(members, flat);
  std::vector<TypePtr> kept;
  for (TypePtr type : flat) {
    if (is_subtype_of_any(type, kept)) continue;
    std::erase_if(kept, [&](TypePtr other) { return other->is_subtype_of(type); });
    kept.push_back(type);
  }
  std::sort(kept.begin(), kept.end(),
            [](TypePtr a, TypePtr b) { return a->kind() != b->kind() ? a->kind() < b->kind() : a->str() < b->str(); });
  TN_CHECK(kept.size() != 1, "Union: expected members that remain distinct, got one type (", kept[0]->annotation(),
           ") after dropping subtypes of others");
  if (kept.size() == 2 && contains_none(kept)) {
    return optional_type(kept[0]->kind() == TypeKind::kNone ? kept[1] : kept[0]);
  }
  if (kept.size() == 4 && contains_none(kept) && holds_number(kept)) return optional_type(&simple(TypeKind::kNumber));
  return intern(TypeKind::kUnion, {}, kept);
}

TypePtr value_type(TypePtr real) {
  switch (real->kind()) {
    case TypeKind::kScalarType:
    case TypeKind::kLayout:
    case TypeKind::kMemoryFormat:
    case TypeKind::kSymInt: return &simple(TypeKind::kInt);
    case TypeKind::kList: return list_type(value_type(real->element()));
    case TypeKind::kOptional: return optional_type(value_type(real->element()));
    default: return real;
  }
}

void Type::append_bracketed(std::string& out, std::string_view open, Append append, std::string_view close) const {
  out += open;
  if (kind_ == TypeKind::kUnion) {
    append_members(out, contained_, append, simple(TypeKind::kNumber));
  } else {
    append_joined(out, contained_, append);
  }
  out += close;
}

void Type::append_schema(std::string& out) const {
  switch (kind_) {
    case TypeKind::kList:
    case TypeKind::kOptional:
      element()->append_schema(out);
      out += kind_ == TypeKind::kList ? "[]" : "?";
      return;
    case TypeKind::kTuple: return append_bracketed(out, "(", &Type::append_schema, ")");
    case TypeKind::kDict: return append_bracketed(out, "Dict(", &Type::append_schema, ")");
    case TypeKind::kUnion: return append_bracketed(out, "Union(", &Type::append_schema, ")");
    case TypeKind::kAwait: return append_bracketed(out, "Await(", &Type::append_schema, ")");
    case TypeKind::kFuture: return append_bracketed(out, "Future(", &Type::append_schema, ")");
    case TypeKind::kRRef: return append_bracketed(out, "RRef(", &Type::append_schema, ")");
    default: out += name_;
  }
}

void Type::append_str(std::string& out) const {
  switch (kind_) {
    case TypeKind::kList:
    case TypeKind::kOptional:
      element()->append_str(out);
      out += kind_ == TypeKind::kList ? "[]" : "?";
      return;
    case TypeKind::kTuple: return append_bracketed(out, "(", &Type::append_str, ")");
    case TypeKind::kDict: return append_bracketed(out, "Dict(", &Type::append_str, ")");
    case TypeKind::kUnion: return append_bracketed(out, "Union(", &Type::append_str, ")");
    case TypeKind::kAwait: return append_bracketed(out, "Await(", &Type::append_str, ")");
    case TypeKind::kFuture: return append_bracketed(out, "Future[", &Type::append_str, "]");
    case TypeKind::kRRef: return append_bracketed(out, "RRef[", &Type::append_str, "]");
    default: out += name_;
  }
}

void Type::append_annotation(std::string& out) const {
  auto bracketed = [&](std::string_view open) { append_bracketed(out, open, &Type::append_annotation, "]"); };
  switch (kind_) {
    case TypeKind::kList: return bracketed("List[");
    case TypeKind::kOptional: return bracketed("Optional[");
    case TypeKind::kTuple: return bracketed(contained_.empty() ? "Tuple[()" : "Tuple[");
    case TypeKind::kDict: return bracketed("Dict[");
    case TypeKind::kUnion: return bracketed("Union[");
    case TypeKind::kAwait: return bracketed("Await[");
    case TypeKind::kFuture: return bracketed("Future[");
    case TypeKind::kRRef: return bracketed("RRef[");
    case TypeKind::kNumber: out += "number"; return;
    case TypeKind::kSymInt: out += "int"; return;
    case TypeKind::kSymFloat: out += "float"; return;
    case TypeKind::kSymBool: out += "bool"; return;
    default: out += name_;
  }
}

std::string Type::str() const {
  std::string out;
  append_str(out);
  return out;
}

std::string Type::annotation() const {
  std::string out;
  append_annotation(out);
  return out;
}

bool Type::has_free_variables() const {
  if (kind_ == TypeKind::kVar) return true;
  return std::any_of(contained_.begin(), contained_.end(), [](TypePtr type) { return type->has_free_variables(); });
}

bool Type::is_subtype_of(TypePtr other) const {
  if (this == other || other->kind_ == TypeKind::kAny) return true;
  // A Union is below another type when each of its members is; Optional counts as a Union with None.
  if (kind_ == TypeKind::kUnion) {
    return std::all_of(contained_.begin(), contained_.end(),
                       [&](TypePtr member) { return member->is_subtype_of(other); });
  }
  if (kind_ == TypeKind::kOptional) {
    return simple(TypeKind::kNone).is_subtype_of(other) && element()->is_subtype_of(other);
  }
  switch (other->kind_) {
    case TypeKind::kOptional: return kind_ == TypeKind::kNone || is_subtype_of(other->element());
    case TypeKind::kUnion:
      return is_subtype_of_any(this, other->contained_) ||
             (kind_ == TypeKind::kNumber && holds_number(other->contained_));
    case TypeKind::kNumber: return kind_ == TypeKind::kInt || kind_ == TypeKind::kFloat || kind_ == TypeKind::kComplex;
    case TypeKind::kAnyList: return kind_ == TypeKind::kList;
    case TypeKind::kAnyTuple: return kind_ == TypeKind::kTuple;
    case TypeKind::kAnyClass: return kind_ == TypeKind::kClass;
    case TypeKind::kAnyEnum: return kind_ == TypeKind::kEnum;
    case TypeKind::kTuple:
    case TypeKind::kFuture:
    case TypeKind::kAwait:
      // Covariant, unlike List, Dict and RRef, which are mutable.
      return kind_ == other->kind_ && contained_.size() == other->contained_.size() &&
             std::equal(contained_.begin(), contained_.end(), other->contained_.begin(),
                        [](TypePtr a, TypePtr b) { return a->is_subtype_of(b); });
    default: return false;
  }
}

}  // namespace tn
