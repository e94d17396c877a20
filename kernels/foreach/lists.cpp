// The loop over lists. Where every element is a plain float tensor, the rows of all elements make one stretch
// of work that is split between threads; otherwise each element's operator is called, as upstream's slow path
// does.
#include <algorithm>
#include <cstring>

#include "kernels/foreach/foreach.h"
#include "kernels/foreach/stretch.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/iterator.h"
#include "runtime/op_table.h"
#include "runtime/view_tracking.h"

namespace tn::foreach {
namespace {

constexpr size_t kMaxInputs = 3;
constexpr size_t kMaxArguments = 4;

// One element's rows. A number among the inputs lies in `numbers` as the element's own dtype.
struct Item {
  char* data[1 + kMaxInputs];
  int64_t strides[1 + kMaxInputs];
  int64_t n;
  ScalarType dtype;
  Arg params[2];
  double numbers[kMaxInputs];
};

// Only these keys: nothing that a subclass, a mode, a transform, a lazy view or a gradient would want to see.
bool plain(const Tensor& t) {
  constexpr uint64_t kOrdinary = KeySet(DispatchKey::CPU).raw() | KeySet(DispatchKey::AutogradCPU).raw() |
                                 KeySet(DispatchKey::ADInplaceOrView).raw() | KeySet(DispatchKey::AutocastCPU).raw();
  const uint64_t graph = grad_mode() ? 0 : KeySet::kNeedsGrad;
  return (t->keys().raw() & ~(kOrdinary | graph)) == 0 && t.is_cpu() && t.layout() == Layout::Strided;
}

bool same_geometry(const Tensor& a, const Tensor& b) { return a.sizes() == b.sizes() && a.strides() == b.strides(); }

bool place_number(const Scalar& number, ScalarType dtype, double* to) {
  if (number.is_complex() || number.is_bool()) return false;  // other kinds of result, or upstream's errors
  store_scalar(number, dtype, to);
  return true;
}
bool place_number(const Tensor& number, ScalarType dtype, double* to) {
  if (number.dim() != 0 || !plain(number) || number.is_complex() || number.dtype() == ScalarType::Bool) return false;
  convert_row(number.dtype(), static_cast<const char*>(number.data_ptr()), 0, dtype, reinterpret_cast<char*>(to), 0, 1);
  return true;
}

// Reads element `i` of the arguments into an item without its result; false if it needs the operator's own
// way.
bool describe(const Each& each, const Over* args, size_t num_args, size_t i, Item& item) {
  const Tensor& self = args[0].tensor(i);
  if (!plain(self) || !self.is_floating_point() || !self->is_non_overlapping_and_dense()) return false;
  item.dtype = self.dtype();
  if (item_size(item.dtype) < 2) return false;  // 8-bit floats are no numbers to compute with
  item.n = self.numel();
  const auto width = static_cast<int64_t>(item_size(item.dtype));
  item.strides[0] = width;
  for (size_t k = 0; k < static_cast<size_t>(each.inputs); ++k) {
    const Over& arg = args[k];
    item.strides[1 + k] = 0;
    item.data[1 + k] = reinterpret_cast<char*>(&item.numbers[k]);
    if (!arg.is_tensor()) {
      if (!place_number(arg.number(i), item.dtype, &item.numbers[k])) return false;
      continue;
    }
    const Tensor& t = arg.tensor(i);
    if (!arg.is_list()) {
      if (!place_number(t, item.dtype, &item.numbers[k])) return false;
      continue;
    }
    if (!plain(t) || t.dtype() != item.dtype || !same_geometry(t, self)) return false;
    item.strides[1 + k] = width;
    item.data[1 + k] = static_cast<char*>(t.data_ptr());
  }
  for (size_t k = static_cast<size_t>(each.inputs); k < num_args; ++k) {
    if (args[k].number(i).is_complex() || args[k].number(i).is_bool()) return false;
    item.params[k - static_cast<size_t>(each.inputs)] = Arg::of(args[k].number(i));
  }
  return true;
}

void run_item(const PointwiseSlot& slot, const Item& item, int64_t begin, int64_t end) {
  char* at[1 + kMaxInputs];
  for (size_t k = 0; k < 1 + kMaxInputs; ++k) at[k] = item.data[k] + begin * item.strides[k];
  slot.row(Row{at, item.strides, end - begin, item.dtype, item.dtype, item.params});
}

// Whether some element's result is memory that another element reads or writes: then their order matters.
bool ordered(const std::vector<Item>& items) {
  struct Range {
    const char* begin;
    const char* end;
    size_t item;
  };
  std::vector<Range> written;
  written.reserve(items.size());
  for (size_t i = 0; i < items.size(); ++i)
    if (items[i].n > 0) written.push_back({items[i].data[0], items[i].data[0] + items[i].n * items[i].strides[0], i});
  std::sort(written.begin(), written.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (size_t k = 1; k < written.size(); ++k)
    if (written[k].begin < written[k - 1].end) return true;
  for (size_t i = 0; i < items.size(); ++i) {
    for (size_t k = 1; k < 1 + kMaxInputs; ++k) {
      if (items[i].strides[k] == 0 || items[i].data[k] == items[i].data[0] || items[i].n == 0) continue;
      const char* const begin = items[i].data[k];
      const char* const end = begin + items[i].n * items[i].strides[k];
      auto after = std::lower_bound(written.begin(), written.end(), end,
                                    [](const Range& r, const char* p) { return r.begin < p; });
      if (after != written.begin() && std::prev(after)->end > begin) return true;
    }
  }
  return false;
}

void run(const PointwiseSlot& slot, const std::vector<Item>& items, bool inplace) {
  int64_t total = 0;
  for (const Item& item : items) total += item.n;
  const bool in_order = inplace && total * slot.cost > TensorIterator::kGrain && ordered(items);
  stretch(items, slot.cost, in_order,
          [&](const Item& item, int64_t begin, int64_t end) { run_item(slot, item, begin, end); });
}

// An item points into itself, so items stay where they were described.
bool describe_all(const Each& each, Arguments args, std::vector<Item>& items) {
  if (each.slot == nullptr) return false;
  const size_t count = args.begin()->size();
  items.resize(count);
  for (size_t i = 0; i < count; ++i) {
    items[i] = Item{};
    for (char*& p : items[i].data) p = reinterpret_cast<char*>(items[i].numbers);
    if (!describe(each, args.begin(), args.size(), i, items[i])) return false;
  }
  return true;
}

// Each element's operator through the door.
Value call_each(size_t op, const Each& each, const Over* args, size_t num_args, size_t i) {
  Arg packed[kMaxArguments];
  Tensor numbers[kMaxArguments];
  for (size_t k = 0; k < num_args; ++k) {
    if (args[k].is_tensor()) {
      packed[k] = Arg::of(args[k].tensor(i));
    } else if (k < static_cast<size_t>(each.tensors)) {
      numbers[k] = wrapped_scalar(args[k].number(i));
      packed[k] = Arg::of(numbers[k]);
    } else {
      packed[k] = Arg::of(args[k].number(i));
    }
  }
  Value out;
  // An element's operator may have further arguments, each of which defaults to None.
  const size_t wanted = op_infos[op].num_args;
  TN_CHECK(num_args <= wanted && wanted <= kMaxArguments, op_infos[op].name, ": expected at most ", kMaxArguments,
           " arguments, got ", wanted);
  door::call_boxed(op_rows[op], {packed, wanted}, &out);
  return out;
}

}  // namespace

void check_lists(Arguments args) {
  const Over& first = *args.begin();
  TN_CHECK(first.size() > 0, "Tensor list must have at least one tensor.");
  for (const Over& arg : args) {
    if (&arg == &first) continue;
    if (arg.is_list()) TN_CHECK(arg.size() > 0, "Tensor list must have at least one tensor.");
    if (arg.is_list())
      TN_CHECK(arg.size() == first.size(), "Tensor lists must have the same number of tensors, got ", first.size(),
               " and ", arg.size());
    else if (arg.is_numbers())
      TN_CHECK(arg.size() == first.size(), "Tensor list must have same number of elements as scalar list.");
    else if (arg.is_tensor())
      TN_CHECK(arg.tensor(0).dim() == 0 && arg.tensor(0).numel() == 1, "scalar tensor expected to be 0 dim but it has ",
               arg.tensor(0).dim(), " dimensions and ", arg.tensor(0).numel(), " elements.");
  }
}

std::vector<Tensor> map(const Each& each, Arguments args) {
  check_lists(args);
  const TensorList self = args.begin()->list();
  std::vector<Tensor> results;
  results.reserve(self.size());
  std::vector<Item> items;
  if (describe_all(each, args, items)) {
    for (size_t i = 0; i < self.size(); ++i) {
      results.push_back(empty_strided(self[i].sizes(), self[i].strides(), self[i].dtype()));
      items[i].data[0] = static_cast<char*>(results[i].data_ptr());
    }
    run(*each.slot, items, false);
    return results;
  }
  for (size_t i = 0; i < self.size(); ++i)
    results.push_back(call_each(each.functional, each, args.begin(), args.size(), i).take_tensor());
  return results;
}

void map_(const Each& each, Arguments args) {
  check_lists(args);
  const TensorList self = args.begin()->list();
  std::vector<Item> items;
  bool fast = describe_all(each, args, items);
  for (size_t i = 0; fast && i < self.size(); ++i) {
    items[i].data[0] = static_cast<char*>(self[i].data_ptr());
    // Another view of the element's own memory is for the operator to judge.
    for (size_t k = 1; k < static_cast<size_t>(each.inputs) && fast; ++k)
      fast = !args.begin()[k].is_list() || items[i].data[1 + k] == items[i].data[0] ||
             !(args.begin()[k].tensor(i).storage() == self[i].storage());
  }
  if (fast) {
    run(*each.slot, items, true);
    constexpr uint64_t kVersions = KeySet(DispatchKey::ADInplaceOrView).raw();
    if ((thread_state.excluded & kVersions) == 0) bump_version(self);
    return;
  }
  for (size_t i = 0; i < self.size(); ++i) call_each(each.inplace, each, args.begin(), args.size(), i);
}

}  // namespace tn::foreach
