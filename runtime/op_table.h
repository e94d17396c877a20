// The operator table's storage, for generated code and the door.
#pragma once
#include "generated/op_ids.h"
#include "runtime/door.h"

namespace tn {

extern constinit const OpInfo op_infos[kNumNativeOps];
extern constinit OpRow op_rows[kNumNativeOps];

// An operator that upstream registers outside native_functions.yaml: refused, but there to be found. Ends with nulls.
struct ExtraOp {
  const char* name;
  const char* overload;
  const char* schema;
  const char* reason;
};
extern constinit const ExtraOp extra_ops[];

// One typed kernel of the generated tables.
struct KernelRow {
  enum Kind : uint8_t {
    kEnd,
    kBackend,         // CPU only
    kBackendAndMeta,  // CPU and Meta
    kImplicit,        // composite: every backend and autograd
    kTracked,         // version bumps and views, at ADInplaceOrView
    kAutograd,        // makes the node, then goes on below
  };
  uint16_t op;
  Kind kind;
  AnyFn fn;
  const Adapter* adapter;
};
extern const KernelRow* const kernel_tables[];
// Hands the runtime what only dispatched code has. In kernels/copy.
void init_kernels();

}  // namespace tn
