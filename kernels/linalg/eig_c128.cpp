#include "kernels/linalg/eigen-inl.h"

namespace tn::linalg {

template int32_t eig(Mat<std::complex<double>>, std::complex<Real<std::complex<double>>>*,
                     std::complex<Real<std::complex<double>>>*);

}  // namespace tn::linalg
