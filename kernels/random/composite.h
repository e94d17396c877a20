// Operators over random tensors that are made of other operators; each call passes the door.
#pragma once
#include "runtime/array_ref.h"
#include "runtime/tensor.h"

namespace tn {
class GeneratorImpl;
}

namespace tn::composite {

const Tensor& rand_out(IntView size, GeneratorImpl* generator, const Tensor& out);
const Tensor& randn_out(IntView size, GeneratorImpl* generator, const Tensor& out);

}  // namespace tn::composite
