// The cross product of vectors in three dimensions.
#include <complex>

#include "generated/slots/distance.h"
#include "generated/slots/view.h"
#include "kernels/common/options.h"
#include "runtime/convert.h"
#include "runtime/iterator.h"
#include "runtime/shape.h"

namespace tn {
namespace {

// Rounded to T, as upstream's are. T is stored, C computed.
template <class T, class C>
T product(T a, T b) {
  return convert<T>(static_cast<C>(convert<C>(a) * convert<C>(b)));
}

template <class T, class C>
void rows(const TensorIterator& it, int64_t out_step, int64_t a_step, int64_t b_step) {
  it.for_rows(
      [=](char* const* data, const int64_t* strides, int64_t n) {
        for (int64_t i = 0; i < n; ++i) {
          T* const to = reinterpret_cast<T*>(data[0] + i * strides[0]);
          const T* const a = reinterpret_cast<const T*>(data[1] + i * strides[1]);
          const T* const b = reinterpret_cast<const T*>(data[2] + i * strides[2]);
          for (int64_t k = 0; k < 3; ++k) {
            const int64_t u = (k + 1) % 3, v = (k + 2) % 3;
            const T left = product<T, C>(a[u * a_step], b[v * b_step]),
                    right = product<T, C>(a[v * a_step], b[u * b_step]);
            to[k * out_step] = convert<T>(static_cast<C>(convert<C>(left) - convert<C>(right)));
          }
        }
      },
      9);
}

}  // namespace

void slots::linalg_cross_meta(Outputs& outs, const Tensor& self, const Tensor& other, int64_t dim) {
  TN_CHECK(self.dim() == other.dim(), "linalg.cross: inputs must have the same number of dimensions.");
  TN_CHECK(self.size(dim) == 3 && other.size(dim) == 3, "linalg.cross: inputs dimension ", dim,
           " must have length 3. Got ", self.size(dim), " and ", other.size(dim));
  outs.set(0, infer_size(self.sizes(), other.sizes()), self.dtype(), self.device());
}

void slots::linalg_cross_cpu(Outputs& outs, const Tensor& self, const Tensor& other, int64_t dim) {
  TN_CHECK(self.dtype() == other.dtype(), "linalg.cross: expected scalar type ", scalar_type_name(self.dtype()),
           " but found ", scalar_type_name(other.dtype()));
  const Tensor& out = outs[0];
  dim = wrap_dim(dim, self.dim());
  const Tensor a = native::expand(self, out.sizes(), false), b = native::expand(other, out.sizes(), false);
  TensorIterator it(outs.op());
  it.add_output(native::select_int(out, dim, 0));
  it.add_input(native::select_int(a, dim, 0));
  it.add_input(native::select_int(b, dim, 0));
  it.build({.promotion = Promotion::Same, .resize_outputs = false, .check_overlap = false});
  const auto run = [&]<class T, class C = T>() { rows<T, C>(it, out->stride(dim), a->stride(dim), b->stride(dim)); };
  switch (self.dtype()) {
    case ScalarType::Byte: return run.template operator()<uint8_t>();
    case ScalarType::Char: return run.template operator()<int8_t>();
    case ScalarType::Short: return run.template operator()<int16_t>();
    case ScalarType::Int: return run.template operator()<int32_t>();
    case ScalarType::Long: return run.template operator()<int64_t>();
    case ScalarType::Float: return run.template operator()<float>();
    case ScalarType::Double: return run.template operator()<double>();
    case ScalarType::Half: return run.template operator()<Half, float>();
    case ScalarType::BFloat16: return run.template operator()<BFloat16, float>();
    case ScalarType::ComplexFloat: return run.template operator()<std::complex<float>>();
    case ScalarType::ComplexDouble: return run.template operator()<std::complex<double>>();
    default: not_implemented("cross", self.dtype());
  }
}

}  // namespace tn
