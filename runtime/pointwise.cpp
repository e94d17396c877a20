// Drivers of pointwise slots. Operands of one shape and dtype, and numbers beside them, run without an iterator.
#include <algorithm>

#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/door.h"
#include "runtime/iterator.h"
#include "runtime/promote.h"
#include "runtime/refuse.h"
#include "runtime/slots.h"
#include "runtime/threads.h"

namespace tn {
namespace {

constexpr size_t kMaxInputs = TensorIterator::kMaxOperands - 1;

ScalarType result_dtype(Promotion promotion, ScalarType computed) {
  return promotion == Promotion::ToBool     ? ScalarType::Bool
         : promotion == Promotion::RealPart ? real_of(computed)
                                            : computed;
}

// Whether a tensor can be read as one run from its first element.
bool plain(const Tensor& t) {
  constexpr uint64_t kPending = KeySet(DispatchKey::Conjugate).raw() | KeySet(DispatchKey::Negative).raw();
  return t.is_contiguous() && t.is_cpu() && t.layout() == Layout::Strided && (t->keys().raw() & kPending) == 0;
}

// Row-major with the strides that a new tensor would have, also in dimensions of size one: only then a result beside a
// number has those strides too.
bool canonical(const Tensor& t) {
  int64_t expected = 1;
  for (int64_t d = t.dim(); d-- > 0;) {
    if (t->stride(d) != expected) return false;
    expected *= t->size(d);
  }
  return t.numel() > 0;
}

void run_rows(const PointwiseSlot& slot, char* const* data, const int64_t* strides, size_t operands, int64_t n,
              ScalarType dtype, ScalarType out_dtype, const Arg* params) {
  const int64_t grain = std::max<int64_t>(TensorIterator::kGrain / slot.cost, 1);
  if (n <= grain) {
    if (n > 0) slot.row(Row{data, strides, n, dtype, out_dtype, params});
    return;
  }
  parallel_for(0, n, grain, [&](int64_t begin, int64_t end) {
    char* at[TensorIterator::kMaxOperands];
    for (size_t k = 0; k < operands; ++k) at[k] = data[k] + begin * strides[k];
    slot.row(Row{at, strides, end - begin, dtype, out_dtype, params});
  });
}

// What the fast way found: one full-sized shape, others of the same shape or single numbers.
struct Fast {
  const Tensor* full = nullptr;
  ScalarType dtype = ScalarType::Undefined;
};

bool find_fast(const PointwiseCall& call, std::span<const Tensor* const> inputs, Fast& fast) {
  if (call.slot.promotion == Promotion::None) return false;
  bool numbers = false, mixed = false;
  for (const Tensor* t : inputs) {
    if (!plain(*t)) return false;
    if (t->dim() == 0) {
      numbers = true;
      continue;
    }
    if (!fast.full) {
      fast.full = t;
      fast.dtype = t->dtype();
    } else if (t->dtype() != fast.dtype || t->sizes() != fast.full->sizes()) {
      return false;
    }
  }
  if (!fast.full) {  // all 0-dim: the same path if no number among them changes the dtype
    fast.full = inputs[0];
    fast.dtype = inputs[0]->dtype();
    for (const Tensor* t : inputs)
      if (t->dtype() != fast.dtype || (*t)->is_wrapped_number()) return false;
  } else if (numbers) {
    if (!canonical(*fast.full)) return false;
    for (const Tensor* t : inputs) mixed |= t->dtype() != fast.dtype;
    if (mixed) {
      ResultType r;
      for (const Tensor* t : inputs) r.add(*t);
      if (r.get() != fast.dtype) return false;
    }
  }
  return call.slot.promotion != Promotion::ToFloat || !is_integral(fast.dtype, true);
}

// Runs into `out`, which is contiguous, of the full shape and of the result's dtype.
void run_fast(const PointwiseCall& call, std::span<const Tensor* const> inputs, const Arg* params, const Fast& fast,
              const Tensor& out) {
  char* data[TensorIterator::kMaxOperands];
  int64_t strides[TensorIterator::kMaxOperands];
  alignas(16) char numbers[16 * TensorIterator::kMaxOperands];
  const auto item = static_cast<int64_t>(item_size(fast.dtype));
  data[0] = static_cast<char*>(out.data_ptr());
  strides[0] = static_cast<int64_t>(out.itemsize());
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Tensor& t = *inputs[k];
    data[k + 1] = static_cast<char*>(t.data_ptr());
    strides[k + 1] = t.dim() == 0 ? 0 : item;
    if (t.dtype() == fast.dtype) continue;
    data[k + 1] = numbers + 16 * k;
    convert_row(t.dtype(), static_cast<const char*>(t.data_ptr()), 0, fast.dtype, data[k + 1], 0, 1);
  }
  run_rows(call.slot, data, strides, inputs.size() + 1, fast.full->numel(), fast.dtype, out.dtype(), params);
}

[[gnu::cold, gnu::noinline]] void refuse_pending_layout(const PointwiseCall& call, Layout layout) {
  refuse(call.op, str("layout ", layout_name(layout)), "no kernel for this layout");
}

void check_inputs(const PointwiseCall& call, std::span<const Tensor* const> inputs, std::span<const Arg> params) {
  for (size_t i = 0; i < inputs.size(); ++i)
    TN_CHECK(inputs[i]->defined(), call.op.name,
             ": Expected a proper Tensor but got None (or an undefined Tensor in C++) for argument #", i);
  TN_CHECK(!inputs.empty() && inputs.size() <= kMaxInputs, "pointwise: expected 1 to ", kMaxInputs, " tensors, got ",
           inputs.size());
  if (call.slot.check) call.slot.check(inputs, params.data());
}

// Everything else: broadcasting, strides, promotion, meta.
Tensor run_iterator(const PointwiseCall& call, std::span<const Tensor* const> inputs, const Arg* params,
                    const Tensor& out, bool inplace) {
  TensorIterator it(call.op);
  it.add_output(out);
  for (const Tensor* t : inputs) {
    if (t->layout() != Layout::Strided) refuse_pending_layout(call, t->layout());
    if (((*t)->is_conj() || (*t)->is_neg()) && !t->is_meta()) it.add_input(resolve(*t));
    else it.add_input(*t);
  }
  it.build({.promotion = call.slot.promotion, .inplace = inplace, .resize_outputs = !inplace});
  const ScalarType dtype = it.common_dtype();
  if (!call.dtypes.has(dtype)) refuse_dtype(call.op, dtype);
  if (!it.is_meta()) {
    const ScalarType out_dtype = it.dtype(0);
    it.for_rows([&](char* const* data, const int64_t* strides,
                    int64_t n) { call.slot.row(Row{data, strides, n, dtype, out_dtype, params}); },
                call.slot.cost);
    it.finish();
  }
  return it.output();
}

}  // namespace

Tensor pointwise(const PointwiseCall& call, std::span<const Tensor* const> inputs, std::span<const Arg> params) {
  check_inputs(call, inputs, params);
  Fast fast;
  if (!find_fast(call, inputs, fast)) return run_iterator(call, inputs, params.data(), Tensor(), false);
  if (!call.dtypes.has(fast.dtype)) refuse_dtype(call.op, fast.dtype);
  Tensor out = empty(fast.full->sizes(), result_dtype(call.slot.promotion, fast.dtype));
  run_fast(call, inputs, params.data(), fast, out);
  return out;
}

void pointwise_inplace(const PointwiseCall& call, std::span<const Tensor* const> inputs, std::span<const Arg> params) {
  check_inputs(call, inputs, params);
  const Tensor& self = *inputs[0];
  Fast fast;
  if (find_fast(call, inputs, fast) && (self.dim() > 0 || fast.full == &self) &&
      result_dtype(call.slot.promotion, fast.dtype) == self.dtype()) {
    bool disjoint = true;  // the same tensor again is fine, another view of its memory is for the iterator to judge
    for (const Tensor* t : inputs) disjoint &= t->is_same(self) || !(t->storage() == self.storage());
    if (disjoint) {
      if (!call.dtypes.has(fast.dtype)) refuse_dtype(call.op, fast.dtype);
      return run_fast(call, inputs, params.data(), fast, self);
    }
  }
  if (!self->is_conj() && !self->is_neg()) {
    run_iterator(call, inputs, params.data(), self, true);
    return;
  }
  const Tensor plain_self = resolve(self);
  const Tensor* replaced[TensorIterator::kMaxOperands];
  for (size_t k = 0; k < inputs.size(); ++k) replaced[k] = inputs[k]->is_same(self) ? &plain_self : inputs[k];
  run_iterator(call, {replaced, inputs.size()}, params.data(), plain_self, true);
  copy_into(self, plain_self);
}

void pointwise_out(const PointwiseCall& call, std::span<const Tensor* const> inputs, std::span<const Arg> params,
                   const Tensor& out) {
  check_inputs(call, inputs, params);
  if (!out->is_conj() && !out->is_neg()) {
    run_iterator(call, inputs, params.data(), out, false);
    return;
  }
  const Tensor result = pointwise(call, inputs, params);
  write_out(call.op, result, out);
}

}  // namespace tn
