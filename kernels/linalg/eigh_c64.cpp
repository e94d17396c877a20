#include "kernels/linalg/eigen-inl.h"

namespace tn::linalg {

template int32_t eigh(Mat<std::complex<float>>, bool, Real<std::complex<float>>*);

}  // namespace tn::linalg
