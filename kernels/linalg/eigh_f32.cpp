#include "kernels/linalg/eigen-inl.h"

namespace tn::linalg {

template int32_t eigh(Mat<float>, bool, Real<float>*);

}  // namespace tn::linalg
