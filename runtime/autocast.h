// Autocast on the CPU: kernels at its key cast an operator's inputs by the operator's policy, then go on
// below.
#pragma once
#include "runtime/door.h"
#include "runtime/dtype.h"

namespace tn {

enum class AutocastPolicy : uint8_t {
  LowerPrecision,  // to the dtype that the thread's autocast was told
  Fp32,            // to float
  Promote,         // to the widest of the inputs
};

// Generated from codegen/autocast.yaml; ends with kEnd.
struct AutocastRow {
  uint16_t op;  // OpId
  AutocastPolicy policy;
  static constexpr uint16_t kEnd = 0xffff;
};
extern const AutocastRow autocast_rows[];

// Devices that autocast knows; enabled is a bit of the thread's excluded keys.
inline constexpr int kAutocastDevices = 10;
struct AutocastState {
  ScalarType dtypes[kAutocastDevices];
  bool cache_off;
  int nesting;
};
inline constexpr int kAutocastCpu = 0;
extern constinit thread_local AutocastState autocast_state;

// Registers the kernels of autocast_rows; called once by init_core.
void init_autocast();
// Forgets the casts of leaves: when the outermost autocast ends.
void clear_autocast_cache();

}  // namespace tn
