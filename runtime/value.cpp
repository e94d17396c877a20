#include "runtime/value.h"

#include <utility>

#include "runtime/copy.h"
#include "runtime/rng.h"

namespace tn {
namespace {

// Kept strings with views of them, so that an Arg can borrow an array of views.
struct Strings {
  std::vector<std::string> owned;
  std::vector<std::string_view> views;
  explicit Strings(ArrayRef<std::string_view> from) {
    owned.reserve(from.size());
    for (const std::string_view s : from) owned.emplace_back(s);
    for (const std::string& s : owned) views.emplace_back(s);
  }
};

using Objects = std::vector<Ref<Object>>;
static_assert(sizeof(Ref<Object>) == sizeof(Object*), "object lists are borrowed as arrays of pointers");

template <class T>
std::vector<T>& as_vector(void* p) {
  return *static_cast<std::vector<T>*>(p);
}
template <class T>
ArrayRef<T> list_of(const Arg& a) {
  return {static_cast<const T*>(a.p), a.size};
}

}  // namespace

Arg Arg::of(const Scalar& s) {
  switch (s.kind()) {
    case Scalar::Kind::Double: return of(s.to_double());
    case Scalar::Kind::Bool: return of(s.to_bool());
    case Scalar::Kind::Complex: return of(s.to_complex());
    case Scalar::Kind::Int: return of(s.to_int64());
    case Scalar::Kind::UInt: break;
  }
  // size 1 marks an unsigned number beyond int64.
  Arg a = of(static_cast<int64_t>(s.to_uint64()));
  a.size = 1;
  return a;
}

Scalar Arg::scalar() const {
  switch (tag) {
    case Tag::Double: return Scalar(d);
    case Tag::Bool: return Scalar(i != 0);
    case Tag::Complex: return Scalar(std::complex<double>(d, im));
    case Tag::Tensor: return item(tensor());
    default: return size == 1 ? Scalar(static_cast<uint64_t>(i)) : Scalar(i);
  }
}

Value::Value(const Scalar& s) : Value(copy_of(Arg::of(s))) {}
Value::Value(std::string s) : tag_(Tag::String) { word_.p = new std::string(std::move(s)); }
Value::Value(std::vector<Tensor> v) : tag_(Tag::TensorList) { word_.p = new std::vector<Tensor>(std::move(v)); }
Value::Value(std::vector<int64_t> v) : tag_(Tag::IntList) { word_.p = new std::vector<int64_t>(std::move(v)); }
Value::Value(Ref<Object> o) {
  if (!o) return;
  tag_ = Tag::Object;
  word_.p = o.release();
}
Value::Value(const Value& o) : Value(copy_of(o.arg())) {}

Value Value::copy_of(const Arg& a) {
  Value v;
  switch (a.tag) {
    case Tag::None: return v;
    case Tag::Tensor: v.word_.p = Tensor(a.tensor()).release(); break;
    case Tag::Int:
    case Tag::Bool:
    case Tag::Device:
      v.word_.i = a.i;
      v.size_ = a.size;
      break;
    case Tag::Double:
    case Tag::Complex:
      v.word_.d = a.d;
      v.im_ = a.im;
      break;
    case Tag::String: v.word_.p = new std::string(a.string()); break;
    case Tag::Generator: v.word_.p = Ref<GeneratorImpl>::share(a.generator()).release(); break;
    case Tag::Storage: v.word_.p = Ref<StorageImpl>::share(a.storage()).release(); break;
    case Tag::Stream: v.word_.p = new Stream(*static_cast<const Stream*>(a.p)); break;
    case Tag::Object: v.word_.p = Ref<Object>::share(static_cast<Object*>(const_cast<void*>(a.p))).release(); break;
    case Tag::IntList: v.word_.p = new std::vector<int64_t>(a.ints().vec()); break;
    case Tag::DoubleList: v.word_.p = new std::vector<double>(a.doubles().vec()); break;
    case Tag::BoolList: v.word_.p = new std::string(static_cast<const char*>(a.p), a.size); break;  // one byte each
    case Tag::TensorList: v.word_.p = new std::vector<Tensor>(a.tensors().vec()); break;
    case Tag::ScalarList: v.word_.p = new std::vector<Scalar>(a.scalars().vec()); break;
    case Tag::StringList: v.word_.p = new Strings(list_of<std::string_view>(a)); break;
    case Tag::ObjectList: {
      auto* objects = new Objects;
      objects->reserve(a.size);
      for (Object* o : list_of<Object*>(a)) objects->push_back(Ref<Object>::share(o));
      v.word_.p = objects;
      break;
    }
  }
  v.tag_ = a.tag;
  return v;
}

Arg Value::arg() const {
  switch (tag_) {
    case Tag::None: return {};
    case Tag::Tensor: return Arg::of_impl(static_cast<TensorImpl*>(word_.p));
    case Tag::Int:
    case Tag::Bool:
    case Tag::Device:
    case Tag::Double:
    case Tag::Complex: {
      Arg a;
      a.tag = tag_;
      a.size = size_;
      a.i = word_.i;
      a.im = im_;
      return a;
    }
    case Tag::String: return Arg::of(std::string_view(*static_cast<std::string*>(word_.p)));
    case Tag::Generator:
    case Tag::Storage:
    case Tag::Stream:
    case Tag::Object: return Arg::list(tag_, word_.p, 0);
    case Tag::IntList: return Arg::of(IntArrayRef(as_vector<int64_t>(word_.p)));
    case Tag::DoubleList: return Arg::of(ArrayRef<double>(as_vector<double>(word_.p)));
    case Tag::BoolList: {
      const std::string& bytes = *static_cast<std::string*>(word_.p);
      return Arg::list(tag_, bytes.data(), bytes.size());
    }
    case Tag::TensorList: return Arg::of(TensorList(as_vector<Tensor>(word_.p)));
    case Tag::ScalarList: return Arg::of(ArrayRef<Scalar>(as_vector<Scalar>(word_.p)));
    case Tag::StringList: {
      const auto& views = static_cast<Strings*>(word_.p)->views;
      return Arg::list(tag_, views.data(), views.size());
    }
    case Tag::ObjectList: {
      const auto& objects = *static_cast<Objects*>(word_.p);
      return Arg::list(tag_, objects.data(), objects.size());
    }
  }
  return {};
}

void Value::clear() noexcept {
  const Tag tag = std::exchange(tag_, Tag::None);
  void* p = word_.p;
  switch (tag) {
    case Tag::Tensor: static_cast<void>(Ref<TensorImpl>::adopt(static_cast<TensorImpl*>(p))); break;
    case Tag::String:
    case Tag::BoolList: delete static_cast<std::string*>(p); break;
    case Tag::Generator: static_cast<void>(Ref<GeneratorImpl>::adopt(static_cast<GeneratorImpl*>(p))); break;
    case Tag::Storage: static_cast<void>(Ref<StorageImpl>::adopt(static_cast<StorageImpl*>(p))); break;
    case Tag::Stream: delete static_cast<Stream*>(p); break;
    case Tag::Object: static_cast<void>(Ref<Object>::adopt(static_cast<Object*>(p))); break;
    case Tag::IntList: delete static_cast<std::vector<int64_t>*>(p); break;
    case Tag::DoubleList: delete static_cast<std::vector<double>*>(p); break;
    case Tag::TensorList: delete static_cast<std::vector<Tensor>*>(p); break;
    case Tag::ScalarList: delete static_cast<std::vector<Scalar>*>(p); break;
    case Tag::StringList: delete static_cast<Strings*>(p); break;
    case Tag::ObjectList: delete static_cast<Objects*>(p); break;
    default: break;
  }
}

}  // namespace tn
