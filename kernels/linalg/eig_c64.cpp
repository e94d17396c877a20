#include "kernels/linalg/eigen-inl.h"

namespace tn::linalg {

template int32_t eig(Mat<std::complex<float>>, std::complex<Real<std::complex<float>>>*,
                     std::complex<Real<std::complex<float>>>*);

}  // namespace tn::linalg
