// Runs that nest deeply go on on another thread, whose stack is fresh. There a run sees what it is nested in.
#pragma once
#include <cstddef>

#include "runtime/autograd/node.h"
#include "runtime/keyset.h"

namespace tn::engine {

struct Place {
  void* run = nullptr;
  Node* node = nullptr;
  ThreadState state;
};
// How many runs this thread's innermost one is nested in, itself included.
size_t depth();
Place place();
// Puts this thread at a place of another thread, which waits meanwhile.
void take_place(const Place& place);

}  // namespace tn::engine
