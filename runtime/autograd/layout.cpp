#include "runtime/autograd/layout.h"

namespace tn {

namespace {

size_t storage_elements(const Tensor& t) { return t.storage() ? t.storage()->nbytes() / t.itemsize() : 0; }

}  // namespace

bool same_layout(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return false;
  if (!a->wrapper && !b->wrapper && storage_elements(a) != storage_elements(b)) return false;
  if (a->is_conj() != b->is_conj() || a->is_neg() != b->is_neg()) return false;
  if (!(a.sizes() == b.sizes())) return false;
  if (a.numel() == 0) return true;
  if (a.storage_offset() != b.storage_offset()) return false;
  for (int64_t d = 0; d < a.dim(); ++d)
    if (a.size(d) != 1 && a.stride(d) != b.stride(d)) return false;
  return true;
}

}  // namespace tn
