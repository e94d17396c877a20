// JIT types as operator schemas use them: interned, immutable, immortal. Two equal types are one object.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tn {

// Upstream's order: members of a Union are sorted by it.
enum class TypeKind : uint8_t {
  kAny,
  kEnum,
  kAnyEnum,
  kTensor,
  kStorage,
  kTuple,
  kList,
  kDict,
  kNumber,
  kFloat,
  kComplex,
  kFuture,
  kAwait,
  kRRef,
  kInt,
  kNone,
  kString,
  kGenerator,
  kQuantizer,
  kBool,
  kOptional,
  kVar,
  kDeviceObj,
  kStreamObj,
  kFunction,
  kClass,
  kPyObject,
  kCapsule,
  kInterface,
  kQScheme,
  kScalarType,
  kLayout,
  kMemoryFormat,
  kAnyList,
  kAnyTuple,
  kAnyClass,
  kSymInt,
  kSymFloat,
  kSymBool,
  kUnion,
};
inline constexpr int kTypeKindCount = static_cast<int>(TypeKind::kUnion) + 1;

// Upstream's name of a kind: "TensorType", "ScalarTypeType", "DeviceObjType".
std::string_view kind_name(TypeKind kind);

class Type;
using TypePtr = const Type*;

class Type {
 public:
  constexpr Type(TypeKind kind, std::string_view name) : kind_(kind), name_(name) {}
  constexpr Type(TypeKind kind, std::string_view name, std::span<const TypePtr> contained)
      : kind_(kind), name_(name), contained_(contained) {}
  Type(const Type&) = delete;
  Type& operator=(const Type&) = delete;

  TypeKind kind() const { return kind_; }
  // The qualified name of a class, the identifier of a type variable; for the simple kinds their text in a schema.
  std::string_view name() const { return name_; }
  std::span<const TypePtr> contained() const { return contained_; }
  // The element of a List, Optional, Future, Await or RRef.
  TypePtr element() const { return contained_[0]; }

  // As Python's Type.str(): "Tensor?", "int[]", "Dict(str, Tensor)", "Future[int]".
  std::string str() const;
  // As in a Python annotation: "Optional[Tensor]", "List[int]", "Dict[str, Tensor]".
  std::string annotation() const;
  void append_str(std::string& out) const;
  // As in a schema, where Future and RRef have parentheses.
  void append_schema(std::string& out) const;
  void append_annotation(std::string& out) const;

  bool is_subtype_of(TypePtr other) const;
  // A place for the bindings' object of this type.
  std::atomic<void*>& wrapper() const { return wrapper_; }
  bool has_free_variables() const;

 private:
  using Append = void (Type::*)(std::string&) const;
  void append_bracketed(std::string& out, std::string_view open, Append append, std::string_view close) const;

  friend TypePtr list_type(TypePtr element);
  friend TypePtr optional_type(TypePtr element);

  TypeKind kind_;
  std::string_view name_;
  std::span<const TypePtr> contained_;
  // The two common compounds of this type, so that a schema's parse takes no lock for them.
  mutable std::atomic<TypePtr> list_{nullptr};
  mutable std::atomic<TypePtr> optional_{nullptr};
  mutable std::atomic<void*> wrapper_{nullptr};
};

// A kind without parameters: Tensor, int, number, str, ... A kind that takes parameters gives nullptr.
TypePtr simple_type(TypeKind kind);

TypePtr list_type(TypePtr element);
// Optional[Optional[T]] is Optional[T], Optional[None] is None.
TypePtr optional_type(TypePtr element);
TypePtr dict_type(TypePtr key, TypePtr value);
TypePtr tuple_type(std::span<const TypePtr> elements);
// Flattens, drops members that are subtypes of others, sorts; may give a single type or an Optional.
TypePtr union_type(std::span<const TypePtr> members);
TypePtr future_type(TypePtr element);
TypePtr await_type(TypePtr element);
TypePtr rref_type(TypePtr element);
TypePtr var_type(std::string_view name);
// Any name is accepted; known_class says whether this build knows a class of that name.
TypePtr class_type(std::string_view qualified_name);
bool known_class(std::string_view qualified_name);

// Replaces ScalarType, Layout, MemoryFormat and SymInt by int, through lists and optionals: an argument's `type`.
TypePtr value_type(TypePtr real);

}  // namespace tn
