#include "runtime/fallbacks.h"

#include <cctype>
#include <string>
#include <vector>

#include "runtime/autograd/forward.h"
#include "runtime/autograd_meta.h"
#include "runtime/copy.h"
#include "runtime/op_table.h"
#include "runtime/schema.h"

namespace tn {

extern const uint16_t ops_without_derivative[];  // generated

namespace {

// Works on plain copies of conjugate and negative views; what an operator writes is written back through the view.
class ResolveFallback final : public BoxedKernel {
 public:
  void call(OpRow& op, KeySet keys, std::span<const Arg> args, Value* out) override {
    const bool mutates = op.info->is(OpInfo::kMutates);
    std::vector<Arg> resolved(args.begin(), args.end());
    std::vector<std::vector<Tensor>> lists;
    std::vector<Written> written;
    lists.reserve(args.size());
    for (size_t i = 0; i < args.size(); ++i) {
      Arg& a = resolved[i];
      if (a.tag != Tag::Tensor && a.tag != Tag::TensorList) continue;
      const bool writes = mutates && schema_of(op).arguments()[i].is_write();
      std::vector<Tensor>& plain = lists.emplace_back();
      const TensorList given = a.tag == Tag::Tensor ? TensorList(&a.tensor(), 1) : a.tensors();
      for (const Tensor& t : given) {
        const bool lazy = t.defined() && (t->is_conj() || t->is_neg());
        plain.push_back(lazy ? resolve(t) : t);
        if (lazy && writes) written.push_back({t, plain.back()});
      }
      a = a.tag == Tag::Tensor ? Arg::of(plain[0]) : Arg::of(TensorList(plain));
    }
    const KeySet below = keys & KeySet::below(DispatchKey::Conjugate);
    door::redispatch_boxed(op, below, resolved, out);
    for (const Written& w : written) {
      if (w.view.sizes() != w.plain.sizes()) resize_output(w.view, w.plain.sizes());
      if (!w.view.is_meta()) copy_into(w.view, w.plain);
      for (int i = 0; i < op.info->num_returns; ++i)
        if (out[i].tag() == Tag::Tensor && out[i].arg().tensor().is_same(w.plain)) out[i] = Value(w.view);
    }
  }

 private:
  struct Written {
    Tensor view, plain;
  };
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

bool has_no_derivative(const OpRow& op) {
  const uint16_t* at = ops_without_derivative;
  while (*at != kNumNativeOps && &op_infos[*at] != op.info) ++at;
  return *at != kNumNativeOps;
}

// The node of a result that upstream has no derivative for either.
class NotImplementedNode final : public Node {
 public:
  explicit NotImplementedNode(const char* op) : Node("NotImplemented"), op_(op) {}
  GradList apply(GradList&&) override { fail(ErrorKind::Runtime, "derivative for ", op_, " is not implemented"); }

 private:
  const char* op_;
};

class GraphMarker final : public BoxedKernel {
 public:
  void call(OpRow& op, KeySet keys, std::span<const Arg> args, Value* out) override {
    if (door::keys_of(args) & ~thread_state.excluded & KeySet::kDual) forward::refuse(op.info->name + 6);
    const bool tracked = grad_mode() && (door::keys_of(args) & KeySet::kNeedsGrad) != 0;
    const KeySet below = keys & KeySet::below(DispatchKey::AutogradOther);
    const bool inplace = op.info->is(OpInfo::kInplace);
    if (inplace && !args.empty() && args[0].tag == Tag::Tensor) check_inplace(args[0].tensor(), tracked);
    door::redispatch_boxed(op, below, args, out);
    if (!tracked) return;
    Ref<Node> node;
    for (int i = 0; i < op.info->num_returns; ++i) {
      if (out[i].tag() == Tag::Tensor) {
        mark(out[i].arg().tensor(), op, node, inplace);
      } else if (out[i].tag() == Tag::TensorList) {
        for (const Tensor& t : out[i].arg().tensors()) mark(t, op, node, false);
      }
    }
  }

 private:
  static void mark(const Tensor& t, const OpRow& op, Ref<Node>& node, bool written) {
    if (!t.defined() || (!t.is_floating_point() && !t.is_complex())) return;
    if (!node && has_no_derivative(op)) node = make_ref<NotImplementedNode>(op.info->name);
    if (!node)
      node = make_ref<RefusingNode>(node_name(*op.info),
                                    str(op.info->name, op.info->overload[0] ? "." : "", op.info->overload),
                                    "its derivative is not compiled yet");
    if (written) rebase_history(t, node);
    else set_history(t, node);
  }
};

}  // namespace

Ref<BoxedKernel> make_resolve_fallback() { return Ref<BoxedKernel>::adopt(new ResolveFallback()); }
Ref<BoxedKernel> make_graph_marker() { return Ref<BoxedKernel>::adopt(new GraphMarker()); }

}  // namespace tn
