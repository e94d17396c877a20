#include "kernels/random/composite.h"

#include "generated/ops/normal.h"
#include "generated/ops/uniform.h"
#include "runtime/rng.h"

namespace tn::composite {

const Tensor& rand_out(IntView size, GeneratorImpl* generator, const Tensor& out) {
  resize_impl(*out.impl(), size);
  return at::uniform_(out, 0, 1, generator);
}
const Tensor& randn_out(IntView size, GeneratorImpl* generator, const Tensor& out) {
  resize_impl(*out.impl(), size);
  return at::normal_(out, 0, 1, generator);
}

}  // namespace tn::composite
