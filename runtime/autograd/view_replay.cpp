#include "runtime/autograd/view_replay.h"

#include "generated/ops/_conj.h"
#include "generated/ops/_neg_view.h"
#include "generated/ops/as_strided.h"
#include "generated/ops/view.h"
#include "generated/ops/view_as_complex.h"
#include "generated/ops/view_as_real.h"
#include "runtime/autograd_meta.h"
#include "runtime/door.h"
#include "runtime/schema.h"

namespace tn {

namespace {

// Sizes, strides and offset of one side of a view.
struct Geometry {
  explicit Geometry(const Tensor& t) : offset(t.storage_offset()) { shape.assign(t.sizes(), t.strides()); }
  Tensor of(const Tensor& t) const { return at::as_strided(t, shape.sizes(), shape.strides(), offset); }
  Shape shape;
  int64_t offset;
};

class StridedReplay final : public ViewReplay {
 public:
  StridedReplay(const Tensor& base, const Tensor& view) : base_(base), view_(view) {}
  Tensor forward(const Tensor& base, Visitor*) const override { return view_.of(base); }
  Tensor reverse(const Tensor& view) const override { return base_.of(view); }

 private:
  Geometry base_, view_;
};

class ChainReplay final : public ViewReplay {
 public:
  ChainReplay(Ref<ViewReplay> first, Ref<ViewReplay> second) : first_(std::move(first)), second_(std::move(second)) {}
  Tensor forward(const Tensor& base, Visitor* visitor) const override {
    return second_->forward(first_->forward(base, visitor), visitor);
  }
  Tensor reverse(const Tensor& view) const override { return first_->reverse(second_->reverse(view)); }

 private:
  Ref<ViewReplay> first_, second_;
};

bool is_symbolic_int(TypePtr type) {
  while (type->kind() == TypeKind::kOptional || type->kind() == TypeKind::kList) type = type->element();
  return type->kind() == TypeKind::kSymInt;
}

class OpReplay final : public ViewReplay {
 public:
  OpReplay(OpRow& op, std::span<const Arg> args, const Tensor& self, const Tensor& view, size_t output)
      : op_(op), output_(output), base_(self), base_dtype_(self.dtype()), view_dtype_(view.dtype()) {
    conj_ = self->is_conj() != view->is_conj();
    neg_ = self->is_neg() != view->is_neg();
    bool found = false;
    for (size_t i = 0; i < args.size(); ++i) {
      const bool is_self = !found && args[i].tag == Tag::Tensor && args[i].t == self.impl();
      if (is_self) self_ = i;
      found |= is_self;
      args_.push_back(is_self ? Value() : Value::copy_of(args[i]));
    }
  }

  Tensor forward(const Tensor& base, Visitor* visitor) const override {
    std::vector<Value> changed;
    std::vector<Arg> args;
    if (visitor) changed = visited(*visitor);
    for (const Value& v : visitor ? changed : args_) args.push_back(v.arg());
    args[self_] = Arg::of(base);
    Value out[1];
    door::call_boxed(op_, args, out);
    return out[0].tag() == Tag::TensorList ? out[0].tensor_vector().at(output_) : out[0].take_tensor();
  }

  Tensor reverse(const Tensor& view) const override {
    Tensor t = view;
    if (is_complex(base_dtype_) && !is_complex(view_dtype_)) t = at::view_as_complex(t);
    else if (!is_complex(base_dtype_) && is_complex(view_dtype_)) t = at::view_as_real(t);
    else if (base_dtype_ != view_dtype_) t = at::view(t, base_dtype_);
    if (conj_) t = at::_conj(t);
    if (neg_) t = at::_neg_view(t);
    return base_.of(t);
  }

 private:
  std::vector<Value> visited(Visitor& visitor) const {
    std::vector<Value> changed = args_;
    const FunctionSchema& schema = schema_of(op_);
    for (size_t i = 0; i < changed.size() && i < schema.arguments().size(); ++i) {
      if (i == self_) continue;
      Value& v = changed[i];
      const bool symbolic = is_symbolic_int(schema.arguments()[i].real_type);
      if (v.tag() == Tag::Tensor) {
        v = Value(visitor.tensor(v.arg().tensor()));
      } else if (symbolic && v.tag() == Tag::Int) {
        v = Value(visitor.symbolic_int(v.arg().i));
      } else if (symbolic && v.tag() == Tag::IntList) {
        std::vector<int64_t> ints = v.arg().ints().vec();
        for (int64_t& n : ints) n = visitor.symbolic_int(n);
        v = Value(std::move(ints));
      }
    }
    return changed;
  }

  OpRow& op_;
  std::vector<Value> args_;
  size_t self_ = 0, output_;
  Geometry base_;
  ScalarType base_dtype_, view_dtype_;
  bool conj_, neg_;
};

}  // namespace

bool needs_replay(const Tensor& base, const Tensor& view) {
  return base.dtype() != view.dtype() || base->is_conj() != view->is_conj() || base->is_neg() != view->is_neg();
}

Ref<ViewReplay> ViewReplay::of_strides(const Tensor& base, const Tensor& view) {
  return make_ref<StridedReplay>(base, view);
}
Ref<ViewReplay> ViewReplay::of_op(OpRow& op, std::span<const Arg> args, const Tensor& self, const Tensor& view,
                                  size_t output) {
  return make_ref<OpReplay>(op, args, self, view, output);
}

Ref<ViewReplay> ViewReplay::chain(const Ref<ViewReplay>& first, const Tensor& base, const Ref<ViewReplay>& second,
                                  const Tensor& view) {
  if (!first && !second) return nullptr;
  Ref<ViewReplay> to_base = first ? first : of_strides(base->autograd->view.base, base);
  return make_ref<ChainReplay>(std::move(to_base), second ? second : of_strides(base, view));
}

Ref<ViewReplay> replay_of(const Tensor& view) {
  const ViewInfo& info = view->autograd->view;
  return info.replay ? info.replay : ViewReplay::of_strides(info.base, view);
}

}  // namespace tn
