// What the runtime gets from dispatched code.
#include "kernels/common/halves.h"
#include "kernels/vmap/vmap.h"
#include "runtime/convert.h"
#include "runtime/op_table.h"

void tn::init_kernels() {
  half_runs = {widen, shorten};
  vmap::install();
}
