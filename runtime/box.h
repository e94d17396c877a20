// Packing and unpacking between typed C++ values and tagged ones, for every type that a generated signature can have.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/tensor.h"
#include "runtime/value.h"

namespace tn::door {

// ---- keys of an argument -------------------------------------------------------------------------------------
inline uint64_t key_bits(const Tensor& t) { return t.defined() ? t->keys().raw() : 0; }
inline uint64_t key_bits(const OptionalTensor& t) { return t ? (*t)->keys().raw() : 0; }
inline uint64_t key_bits(TensorList list) {
  uint64_t keys = 0;
  for (const Tensor& t : list) keys |= key_bits(t);
  return keys;
}
uint64_t key_bits(GeneratorImpl* generator);
template <class T>
constexpr uint64_t key_bits(const T&) {
  return 0;
}

template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};
template <class T>
struct is_bool_array : std::false_type {};
template <size_t N>
struct is_bool_array<std::array<bool, N>> : std::true_type {};
template <class T>
struct is_tuple : std::false_type {};
template <class... T>
struct is_tuple<std::tuple<T...>> : std::true_type {};

// ---- typed -> tagged -----------------------------------------------------------------------------------------
template <class A>
Arg pack(const std::remove_cvref_t<A>& v) {
  using T = std::remove_cvref_t<A>;
  if constexpr (is_optional<T>::value) {
    return v ? pack<typename T::value_type>(*v) : Arg();
  } else if constexpr (std::is_same_v<T, OptionalTensor>) {
    return v ? Arg::of(*v) : Arg();
  } else if constexpr (std::is_enum_v<T>) {
    return Arg::of(static_cast<int64_t>(v));
  } else if constexpr (is_bool_array<T>::value) {
    return Arg::of(ArrayRef<bool>(v.data(), v.size()));
  } else {
    return Arg::of(v);
  }
}

// ---- tagged -> typed -----------------------------------------------------------------------------------------
template <class T>
auto unpack_value(const Arg& a) {
  if constexpr (is_optional<T>::value) {
    using V = typename T::value_type;
    return a.is_none() ? T() : T(unpack_value<V>(a));
  } else if constexpr (std::is_same_v<T, OptionalTensor>) {
    return OptionalTensor(a.tag == Tag::Tensor ? a.t : nullptr);
  } else if constexpr (std::is_same_v<T, Scalar>) {
    return a.scalar();
  } else if constexpr (std::is_same_v<T, bool>) {
    return a.i != 0;
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return a.i;
  } else if constexpr (std::is_same_v<T, double>) {
    return a.number();
  } else if constexpr (std::is_same_v<T, std::string_view>) {
    return a.string();
  } else if constexpr (std::is_same_v<T, Device>) {
    return a.device();
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<T>(a.i);
  } else if constexpr (std::is_same_v<T, IntArrayRef>) {
    return a.ints();
  } else if constexpr (std::is_same_v<T, ArrayRef<double>>) {
    return a.doubles();
  } else if constexpr (std::is_same_v<T, ArrayRef<bool>>) {
    return a.bools();
  } else if constexpr (std::is_same_v<T, ArrayRef<Scalar>>) {
    return a.scalars();
  } else if constexpr (std::is_same_v<T, TensorList>) {
    return a.tensors();
  } else if constexpr (std::is_same_v<T, GeneratorImpl*>) {
    return a.generator();
  } else if constexpr (std::is_same_v<T, Storage>) {
    return Storage(Ref<StorageImpl>::share(a.storage()));
  } else if constexpr (std::is_same_v<T, Stream>) {
    return *static_cast<const Stream*>(a.p);
  } else {
    static_assert(is_bool_array<T>::value, "a type that no generated signature has");
    T v{};
    for (size_t i = 0; i < v.size() && i < a.size; ++i) v[i] = a.bools()[i];
    return v;
  }
}
template <class A>
decltype(auto) unpack(const Arg& a) {
  using T = std::remove_cvref_t<A>;
  if constexpr (std::is_same_v<T, Tensor>) return a.tensor();
  else return unpack_value<T>(a);
}

// ---- results -------------------------------------------------------------------------------------------------
template <class R>
constexpr size_t results_of() {
  if constexpr (std::is_void_v<R>) return 1;
  else if constexpr (is_tuple<R>::value) return std::tuple_size_v<R> == 0 ? 1 : std::tuple_size_v<R>;
  else return 1;
}

template <class T>
Value to_value(T&& v) {
  using U = std::remove_cvref_t<T>;
  if constexpr (std::is_same_v<U, Tensor>) return Value(Tensor(std::forward<T>(v)));
  else if constexpr (std::is_same_v<U, Storage>) return Value::copy_of(Arg::of(v));
  else return Value(std::forward<T>(v));
}
template <class R>
void pack_result(R&& r, Value* out) {
  if constexpr (is_tuple<std::remove_cvref_t<R>>::value) {
    [&]<size_t... I>(std::index_sequence<I...>) {
      ((out[I] = to_value(std::get<I>(std::forward<R>(r)))), ...);
    }(std::make_index_sequence<std::tuple_size_v<std::remove_cvref_t<R>>>());
  } else {
    out[0] = to_value(std::forward<R>(r));
  }
}

// References returned by in-place and out= forms name one of the caller's arguments: found again by identity.
// `originals` holds, for each argument, the caller's tensor (null where it is none).
const Tensor& same_argument(const Value& result, std::span<const Tensor* const> originals);

template <class A>
const Tensor* original(const std::remove_cvref_t<A>& v) {
  if constexpr (std::is_same_v<A, const Tensor&>) return &v;
  else return nullptr;
}

template <class T>
T from_value(Value& v, std::span<const Tensor* const> originals) {
  using U = std::remove_cvref_t<T>;
  if constexpr (std::is_reference_v<T>) return same_argument(v, originals);
  else if constexpr (std::is_same_v<U, Tensor>) return v.take_tensor();
  else if constexpr (std::is_same_v<U, std::vector<Tensor>>) return v.is_none() ? U() : std::move(v.tensor_vector());
  else if constexpr (std::is_same_v<U, std::vector<int64_t>>) return v.arg().ints().vec();
  else return unpack_value<U>(v.arg());
}
template <class R>
R unpack_results(Value* out, std::span<const Tensor* const> originals) {
  if constexpr (std::is_void_v<R>) return;
  else if constexpr (is_tuple<R>::value)
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return R(from_value<std::tuple_element_t<I, R>>(out[I], originals)...);
    }(std::make_index_sequence<std::tuple_size_v<R>>());
  else return from_value<R>(out[0], originals);
}

}  // namespace tn::door
