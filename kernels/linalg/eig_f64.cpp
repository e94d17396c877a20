#include "kernels/linalg/eigen-inl.h"

namespace tn::linalg {

template int32_t eig(Mat<double>, std::complex<Real<double>>*, std::complex<Real<double>>*);

}  // namespace tn::linalg
