#include "kernels/linalg/eigen-inl.h"

namespace tn::linalg {

template int32_t eigh(Mat<double>, bool, Real<double>*);

}  // namespace tn::linalg
