#include "kernels/linalg/eigen-inl.h"

namespace tn::linalg {

template int32_t eig(Mat<float>, std::complex<Real<float>>*, std::complex<Real<float>>*);

}  // namespace tn::linalg
