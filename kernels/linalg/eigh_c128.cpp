#include "kernels/linalg/eigen-inl.h"

namespace tn::linalg {

template int32_t eigh(Mat<std::complex<double>>, bool, Real<std::complex<double>>*);

}  // namespace tn::linalg
