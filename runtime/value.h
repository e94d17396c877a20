// Tagged arguments and results: how calls look where the operator is data (boxed calls, bindings, observers).
#pragma once
#include <complex>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/array_ref.h"
#include "runtime/device.h"
#include "runtime/fwd.h"
#include "runtime/intrusive.h"
#include "runtime/scalar.h"
#include "runtime/tensor.h"

namespace tn {

enum class Tag : uint8_t {
  None,
  Tensor,
  Int,
  Double,
  Bool,
  Complex,
  String,
  Device,
  Generator,
  Storage,
  Stream,
  Object,
  IntList,
  DoubleList,
  BoolList,
  TensorList,
  ScalarList,
  StringList,
  ObjectList,
};

struct Stream {
  int64_t id = 0;
  Device device;
};

// A foreign object in a boxed call (Python's symbolic numbers, script objects). Bindings define what it is.
class Object : public RefCounted {
 public:
  virtual ~Object() = default;
  static void destroy(Object* o) noexcept { delete o; }
};

// An argument: trivially copyable, borrows everything. dtype, layout and memory format travel as Int; the schema tells.
struct Arg {
  Tag tag = Tag::None;
  uint32_t size = 0;  // elements of a list, bytes of a string
  union {
    TensorImpl* t;
    int64_t i;
    double d;
    bool b;
    const void* p;
  };
  double im = 0;  // imaginary part of Complex

  constexpr Arg() : i(0) {}
  static Arg of(const Tensor& v) { return v.defined() ? of_impl(v.impl()) : Arg(); }
  static Arg of_impl(TensorImpl* v) {
    Arg a;
    a.tag = Tag::Tensor;
    a.t = v;
    return a;
  }
  static constexpr Arg of(int64_t v) {
    Arg a;
    a.tag = Tag::Int;
    a.i = v;
    return a;
  }
  static constexpr Arg of(double v) {
    Arg a;
    a.tag = Tag::Double;
    a.d = v;
    return a;
  }
  static constexpr Arg of(bool v) {
    Arg a;
    a.tag = Tag::Bool;
    a.i = v;
    return a;
  }
  static constexpr Arg of(std::complex<double> v) {
    Arg a;
    a.tag = Tag::Complex;
    a.d = v.real();
    a.im = v.imag();
    return a;
  }
  static Arg of(const Scalar& s);
  static constexpr Arg of(std::string_view v) { return list(Tag::String, v.data(), v.size()); }
  static Arg of(Device d) {
    Arg a;
    a.tag = Tag::Device;
    a.i = static_cast<int64_t>(d.type) | (static_cast<int64_t>(d.index) << 8);
    return a;
  }
  static Arg of(GeneratorImpl* g) {
    Arg a;
    if (g) {
      a.tag = Tag::Generator;
      a.p = g;
    }
    return a;
  }
  static Arg of(const Storage& s) {
    Arg a;
    a.tag = Tag::Storage;
    a.p = s.get();
    return a;
  }
  static Arg of(const Stream& s) {
    Arg a;
    a.tag = Tag::Stream;
    a.p = &s;
    return a;
  }
  static constexpr Arg of(IntArrayRef v) { return list(Tag::IntList, v.data(), v.size()); }
  static constexpr Arg of(ArrayRef<double> v) { return list(Tag::DoubleList, v.data(), v.size()); }
  static constexpr Arg of(ArrayRef<bool> v) { return list(Tag::BoolList, v.data(), v.size()); }
  static Arg of(TensorList v) { return list(Tag::TensorList, v.data(), v.size()); }
  static Arg of(ArrayRef<Scalar> v) { return list(Tag::ScalarList, v.data(), v.size()); }
  static constexpr Arg list(Tag tag, const void* data, size_t n) {
    Arg a;
    a.tag = tag;
    a.size = static_cast<uint32_t>(n);
    a.p = data;
    return a;
  }

  bool is_none() const { return tag == Tag::None; }
  // Undefined for None.
  const Tensor& tensor() const {
    static const Tensor undefined;
    return tag == Tag::Tensor ? *reinterpret_cast<const Tensor*>(&t) : undefined;
  }
  Scalar scalar() const;
  double number() const { return tag == Tag::Double || tag == Tag::Complex ? d : static_cast<double>(i); }
  std::string_view string() const { return {static_cast<const char*>(p), size}; }
  Device device() const { return Device(static_cast<DeviceType>(i & 0xff), static_cast<int8_t>(i >> 8)); }
  GeneratorImpl* generator() const {
    return tag == Tag::Generator ? static_cast<GeneratorImpl*>(const_cast<void*>(p)) : nullptr;
  }
  StorageImpl* storage() const { return static_cast<StorageImpl*>(const_cast<void*>(p)); }
  IntArrayRef ints() const { return IntArrayRef(static_cast<const int64_t*>(p), static_cast<size_t>(size)); }
  ArrayRef<double> doubles() const {
    return ArrayRef<double>(static_cast<const double*>(p), static_cast<size_t>(size));
  }
  ArrayRef<bool> bools() const { return ArrayRef<bool>(static_cast<const bool*>(p), static_cast<size_t>(size)); }
  TensorList tensors() const { return TensorList(static_cast<const Tensor*>(p), static_cast<size_t>(size)); }
  ArrayRef<Scalar> scalars() const {
    return ArrayRef<Scalar>(static_cast<const Scalar*>(p), static_cast<size_t>(size));
  }
};

// A result, or a kept argument: owns what it holds.
class Value {
 public:
  Value() = default;
  Value(const Value& o);
  Value(Value&& o) noexcept : tag_(o.tag_), size_(o.size_), im_(o.im_) {
    word_ = o.word_;
    o.tag_ = Tag::None;
  }
  Value& operator=(Value o) noexcept {
    std::swap(tag_, o.tag_);
    std::swap(size_, o.size_);
    std::swap(im_, o.im_);
    std::swap(word_, o.word_);
    return *this;
  }
  ~Value() {
    if (tag_ != Tag::None) clear();
  }

  explicit Value(Tensor t) {
    if (t.defined()) {
      tag_ = Tag::Tensor;
      word_.p = t.release();
    }
  }
  explicit Value(int64_t v) : tag_(Tag::Int) { word_.i = v; }
  explicit Value(double v) : tag_(Tag::Double) { word_.d = v; }
  explicit Value(bool v) : tag_(Tag::Bool) { word_.i = v; }
  explicit Value(std::complex<double> v) : tag_(Tag::Complex), im_(v.imag()) { word_.d = v.real(); }
  explicit Value(const Scalar& s);
  explicit Value(ScalarType t) : Value(static_cast<int64_t>(t)) {}
  explicit Value(std::string s);
  explicit Value(std::vector<Tensor> v);
  explicit Value(std::vector<int64_t> v);
  explicit Value(Ref<Object> o);
  // Copies whatever the argument borrows.
  static Value copy_of(const Arg& a);

  Tag tag() const { return tag_; }
  bool is_none() const { return tag_ == Tag::None; }
  // Borrows from this value.
  Arg arg() const;
  Tensor take_tensor() {
    if (tag_ != Tag::Tensor) return {};
    tag_ = Tag::None;
    return Tensor::adopt(static_cast<TensorImpl*>(word_.p));
  }
  std::vector<Tensor>& tensor_vector() { return *static_cast<std::vector<Tensor>*>(word_.p); }
  Object* object() const { return static_cast<Object*>(word_.p); }

 private:
  void clear() noexcept;

  Tag tag_ = Tag::None;
  uint32_t size_ = 0;
  double im_ = 0;
  union Word {
    int64_t i;
    double d;
    void* p;
  } word_{};
};

}  // namespace tn
