#include "kernels/foreach/graph.h"

#include <algorithm>

#include "generated/ops/add.h"
#include "generated/ops/sum.h"
#include "runtime/autograd/node.h"

namespace tn::foreach {
namespace {

class ListNode final : public Node {
 public:
  ListNode(const char* name, std::initializer_list<TensorList> inputs, const std::vector<Tensor>& results)
      : Node(name) {
    for (const TensorList& list : inputs) {
      starts_.push_back(edges.size());
      shared_.push_back(list.size() == 1);
      add_edges_of(list);
    }
    for (const Tensor& t : results) parts_.push_back(grad_fn_of(t));
  }

  GradList apply(GradList&& grads) override {
    GradList out(edges.size());
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (!parts_[i] || !grads[i].defined()) continue;
      GradList part(1);
      part[0] = std::move(grads[i]);
      const GradList found = parts_[i]->apply(std::move(part));
      for (size_t k = 0; k < std::min(found.size(), starts_.size()); ++k) {
        if (!found[k].defined()) continue;
        if (!shared_[k] || parts_.size() == 1) {
          out[starts_[k] + i] = found[k];  // the engine brings it to the input's shape
          continue;
        }
        Tensor& total = out[starts_[k]];
        const Tensor one = at::sum(found[k], std::optional<ScalarType>());  // what elements share has no dimension
        total = total.defined() ? at::add(total, one) : one;
      }
    }
    return out;
  }
  void release_variables() override {
    for (const Ref<Node>& part : parts_)
      if (part) part->release_variables();
  }

 private:
  std::vector<Ref<Node>> parts_;  // null: this element needs no gradient
  std::vector<size_t> starts_;    // each input's first edge
  std::vector<bool> shared_;
};

const char* node_name(size_t op) {
  for (const NodeName* n = node_names; n->name; ++n)
    if (n->op == op) return n->name;
  return nullptr;
}

}  // namespace

std::vector<Tensor> joined(size_t op, std::initializer_list<TensorList> inputs, std::vector<Tensor> results) {
  if (std::none_of(results.begin(), results.end(), [](const Tensor& t) { return t.requires_grad(); })) return results;
  const char* const name = node_name(op);
  if (!name) return results;
  const Ref<Node> node = Ref<Node>::adopt(new ListNode(name, inputs, results));
  for (const Tensor& t : results) set_history(t, node);
  return results;
}

}  // namespace tn::foreach
