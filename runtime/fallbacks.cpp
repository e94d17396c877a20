#include "runtime/fallbacks.h"

#include <cctype>
#include <string>
#include <vector>

#include "runtime/autograd/forward.h"
#include "runtime/autograd_meta.h"
#include "runtime/copy.h"

namespace tn {
namespace {

class ResolveFallback final : public BoxedKernel {
 public:
  void call(OpRow& op, KeySet keys, std::span<const Arg> args, Value* out) override {
    std::vector<Arg> resolved(args.begin(), args.end());
    std::vector<Tensor> owned;
    std::vector<std::vector<Tensor>> lists;
    owned.reserve(args.size());
    lists.reserve(args.size());
    for (Arg& a : resolved) {
      if (a.tag == Tag::Tensor) {
        const Tensor& t = a.tensor();
        if (!t->is_conj() && !t->is_neg()) continue;
        TN_CHECK(!op.info->is(OpInfo::kMutates), op.info->name,
                 ": expected a plain tensor, got a conjugate or negative view");
        owned.push_back(resolve(t));
        a = Arg::of(owned.back());
      } else if (a.tag == Tag::TensorList) {
        std::vector<Tensor>& list = lists.emplace_back();
        for (const Tensor& t : a.tensors())
          list.push_back(t.defined() && (t->is_conj() || t->is_neg()) ? resolve(t) : t);
        a = Arg::of(TensorList(list));
      }
    }
    const KeySet below = keys & KeySet::below(DispatchKey::Conjugate);
    door::redispatch_boxed(op, below, resolved, out);
  }
};

// "AddBackward0" for aten::add.Tensor: upstream's node names, as far as the name alone tells.
std::string node_name(const OpInfo& op) {
  std::string name;
  bool upper = true;
  for (const char* c = op.name + (std::string_view(op.name).starts_with("aten::") ? 6 : 0); *c; ++c) {
    if (*c == '_') {
      upper = true;
      continue;
    }
    name += upper ? static_cast<char>(std::toupper(*c)) : *c;
    upper = false;
  }
  return name + "Backward0";
}

class GraphMarker final : public BoxedKernel {
 public:
  void call(OpRow& op, KeySet keys, std::span<const Arg> args, Value* out) override {
    if (door::keys_of(args) & ~thread_state.excluded & KeySet::kDual) forward::refuse(op.info->name + 6);
    const bool tracked = grad_mode() && (door::keys_of(args) & KeySet::kNeedsGrad) != 0;
    const KeySet below = keys & KeySet::below(DispatchKey::AutogradOther);
    if (tracked && op.info->is(OpInfo::kInplace))
      for (const Arg& a : args.first(1))
        TN_CHECK(a.tag != Tag::Tensor || !a.t->requires_grad() || !is_leaf(a.tensor()),
                 "a leaf Variable that requires grad is being used in an in-place operation.");
    door::redispatch_boxed(op, below, args, out);
    if (!tracked) return;
    Ref<Node> node;
    for (int i = 0; i < op.info->num_returns; ++i) {
      if (out[i].tag() == Tag::Tensor) {
        mark(out[i].arg().tensor(), op, node);
      } else if (out[i].tag() == Tag::TensorList) {
        for (const Tensor& t : out[i].arg().tensors()) mark(t, op, node);
      }
    }
  }

 private:
  static void mark(const Tensor& t, const OpRow& op, Ref<Node>& node) {
    if (!t.defined() || (!t.is_floating_point() && !t.is_complex())) return;
    if (!node)
      node = make_ref<RefusingNode>(node_name(*op.info),
                                    str(op.info->name, op.info->overload[0] ? "." : "", op.info->overload),
                                    "its derivative is not compiled yet");
    set_history(t, node);
  }
};

}  // namespace

Ref<BoxedKernel> make_resolve_fallback() { return Ref<BoxedKernel>::adopt(new ResolveFallback()); }
Ref<BoxedKernel> make_graph_marker() { return Ref<BoxedKernel>::adopt(new GraphMarker()); }

}  // namespace tn
