// When a composite may call kernels below the door: nobody watches, nothing records, no key but plain CPU ones is in
// play.
#pragma once
#include <initializer_list>

#include "runtime/op_table.h"

namespace tn::matmul {

// `rows` are the operators whose kernels will stand for the composition: none may have been replaced at run time.
inline bool may_skip_door(std::initializer_list<const Tensor*> tensors, std::initializer_list<OpId> rows) {
  constexpr uint64_t kPlain = KeySet(DispatchKey::CPU).raw() | KeySet(DispatchKey::AutogradCPU).raw() |
                              KeySet(DispatchKey::ADInplaceOrView).raw() | KeySet(DispatchKey::BackendSelect).raw();
  uint64_t keys = thread_state.included;
  for (const Tensor* t : tensors) keys |= (*t)->keys().raw();
  keys &= ~thread_state.excluded;
  if ((keys & ~kPlain) != 0 || observer != nullptr) return false;  // kNeedsGrad is not among the plain ones
  for (const OpId id : rows) {
    const OpRow& row = op_rows[id];
    if (row.fn[kColCpu] != row.kernel) return false;
  }
  return true;
}

}  // namespace tn::matmul
