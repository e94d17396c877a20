// What an answered gradient must be: it fits the forward's value that it belongs to.
#include "generated/ops/squeeze.h"
#include "generated/ops/sum.h"
#include "generated/ops/to.h"
#include "runtime/autograd/engine.h"

namespace tn::engine {

namespace {

[[gnu::cold]] std::string blame(const Node* who) {
  return who ? str("Function ", who->name(), " returned an ") : std::string();
}

// The dimensions of `from` that broadcasting added to `to`, the leading ones too. False where the shapes don't fit.
bool added_dims(IntView from, IntView to, std::vector<int64_t>& dims) {
  if (from.size() < to.size()) return false;
  const size_t lead = from.size() - to.size();
  for (size_t d = 0; d < from.size(); ++d) {
    if (d < lead || (to[d - lead] == 1 && from[d] != 1)) dims.push_back(static_cast<int64_t>(d));
    else if (to[d - lead] != from[d]) return false;
  }
  return true;
}

Tensor reduced(const Tensor& g, IntView to, size_t index, const Node* who) {
  std::vector<int64_t> dims;
  TN_CHECK(added_dims(g.sizes(), to, dims), blame(who), "invalid gradient at index ", index, " - got ", g.sizes(),
           " but expected shape compatible with ", to);
  Tensor r = dims.empty() ? g : at::sum(g, IntView(dims), true);
  for (size_t d = g.sizes().size(); d > to.size(); --d) r = at::squeeze(r, 0);
  return r;
}

Tensor on_device(const Tensor& g, Device device, size_t index, const Node* who) {
  TN_CHECK(g.dim() == 0, blame(who), "invalid gradient at index ", index, " - expected device ", device.str(),
           " but got ", g.device().str());
  return at::to(g, device, g.dtype());
}

}  // namespace

void check_gradients(const std::vector<Edge>& edges, GradList& grads, const Node* who) {
  TN_CHECK(grads.size() == edges.size() || (who && edges.empty()), blame(who),
           "invalid number of gradients - expected ", edges.size(), ", but got ", grads.size());
  for (size_t i = 0; i < edges.size(); ++i) {
    const Edge& e = edges[i];
    Tensor& g = grads[i];
    if (!e.node || !g.defined() || e.input >= e.node->inputs.size()) continue;
    const InputMeta& m = e.node->inputs[e.input];
    if (m.is_undefined()) continue;
    if (g.sizes() != m.shape.sizes()) g = reduced(g, m.shape.sizes(), i, who);
    TN_CHECK(g.is_floating_point() || is_complex(m.dtype) == g.is_complex(), "Function ", who ? who->name() : "root",
             ": expected a ", is_complex(m.dtype) ? "complex" : "real", " gradient at index ", i, ", got ",
             scalar_type_name(g.dtype()));
    if (g.dtype() != m.dtype) g = at::to(g, m.dtype);
    if (!(g.device() == m.device)) g = on_device(g, m.device, i, who);
  }
}

}  // namespace tn::engine
