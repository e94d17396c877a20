#include "kernels/rnn/composites.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "generated/ops/linear.h"
#include "generated/ops/matmul.h"
#include "generated/ops/narrow.h"
#include "generated/ops/relu.h"
#include "generated/ops/t.h"
#include "generated/ops/transpose.h"
#include "generated/ops/unbind.h"
#include "generated/ops/unsafe_chunk.h"
#include "kernels/matmul/calls.h"
#include "runtime/copy.h"

namespace tn::composite {
namespace {

// One direction of one layer. Absent ones are undefined.
struct Params {
  Tensor w_ih, w_hh, b_ih, b_hh, w_hr;

  static OptionalTensor optional(const Tensor& t) { return t.defined() ? OptionalTensor(t) : OptionalTensor(); }
  Tensor of_input(const Tensor& x) const { return at::linear(x, w_ih, optional(b_ih)); }
  Tensor of_hidden(const Tensor& h) const { return at::linear(h, w_hh, optional(b_hh)); }
};

// The cell state is an LSTM's only.
struct State {
  Tensor h, c;
};

State slice(const State& s, int64_t from, int64_t count) {
  return {at::narrow(s.h, 0, from, count), s.c.defined() ? at::narrow(s.c, 0, from, count) : Tensor()};
}

State concatenate(const std::vector<State>& parts) {
  std::vector<Tensor> h, c;
  for (const State& s : parts) {
    h.push_back(s.h);
    if (s.c.defined()) c.push_back(s.c);
  }
  return {call::cat(h, 0), c.empty() ? Tensor() : call::cat(c, 0)};
}

// The gates of a step side by side, as many as the cell has.
std::vector<Tensor> gate_chunks(const Tensor& gates, int64_t count) {
  TN_CHECK(gates.dim() == 2 && gates->size(1) % count == 0, "rnn cell: expected gates of a width that ", count,
           " divides, got sizes ", gates.sizes());
  return at::unsafe_chunk(gates, count, 1);
}

// `gates_in` is what the input contributes, the weights applied already.
State lstm_step(const Tensor& gates_in, const State& state, const Params& p, bool computed) {
  const Tensor of_hidden = p.of_hidden(state.h);
  const Tensor gates = call::add_(of_hidden, computed ? gates_in : p.of_input(gates_in));
  const std::vector<Tensor> parts = gate_chunks(gates, 4);
  const Tensor in = call::sigmoid_(parts[0]), forget = call::sigmoid_(parts[1]), cell = call::tanh_(parts[2]),
               out = call::sigmoid_(parts[3]);
  const Tensor kept = call::mul(forget, state.c);
  const Tensor c = call::add_(kept, call::mul(in, cell));
  Tensor h = call::mul(out, call::tanh(c));
  if (p.w_hr.defined()) h = at::matmul(h, at::t(p.w_hr));
  return {h, c};
}

State gru_step(const Tensor& gates_in, const State& state, const Params& p, bool computed) {
  const std::vector<Tensor> in = gate_chunks(computed ? gates_in : p.of_input(gates_in), 3);
  const std::vector<Tensor> hidden = gate_chunks(p.of_hidden(state.h), 3);
  const Tensor reset = call::sigmoid_(call::add_(hidden[0], in[0]));
  const Tensor update = call::sigmoid_(call::add_(hidden[1], in[1]));
  const Tensor candidate = call::add(in[2], call::mul_(hidden[2], reset));
  call::tanh_(candidate);
  const Tensor h = call::sub(state.h, candidate);
  call::add_(call::mul_(h, update), candidate);
  return {h, {}};
}

State step(Cell cell, const Tensor& input, const State& state, const Params& p, bool computed) {
  if (cell == Cell::Lstm) return lstm_step(input, state, p, computed);
  if (cell == Cell::Gru) return gru_step(input, state, p, computed);
  const Tensor hidden = p.of_hidden(state.h);
  const Tensor sum = call::add_(hidden, computed ? input : p.of_input(input));
  return {cell == Cell::Tanh ? call::tanh(sum) : at::relu(sum), {}};
}

// ---- one layer, one direction --------------------------------------------------------------------------------------

struct LayerResult {
  Tensor output;
  State final;
};

LayerResult run_full(Cell cell, const Tensor& input, const State& start, const Params& p, bool reverse) {
  std::vector<Tensor> steps = at::unbind(p.of_input(input), 0);
  if (reverse) std::reverse(steps.begin(), steps.end());
  State state = start;
  std::vector<Tensor> outputs;
  outputs.reserve(steps.size());
  for (const Tensor& x : steps) {
    state = step(cell, x, state, p, true);
    outputs.push_back(state.h);
  }
  TN_CHECK(!outputs.empty(), "Expected sequence length to be larger than 0 in RNN");
  if (reverse) std::reverse(outputs.begin(), outputs.end());
  return {call::stack(outputs, 0), state};
}

// A packed sequence: the rows of each time step stand one after the other, and batches only shrink.
LayerResult run_packed(Cell cell, const Tensor& input, const IntView batch_sizes, const State& start, const Params& p) {
  const Tensor gates = p.of_input(input);
  int64_t offset = 0, last = batch_sizes[0];
  State state = start;
  std::vector<Tensor> outputs;
  std::vector<State> ended;
  for (const int64_t batch : batch_sizes) {
    const Tensor x = at::narrow(gates, 0, offset, batch);
    offset += batch;
    if (const int64_t fewer = last - batch; fewer > 0) {
      ended.push_back(slice(state, last - fewer, fewer));
      state = slice(state, 0, last - fewer);
    }
    last = batch;
    state = step(cell, x, state, p, true);
    outputs.push_back(state.h);
  }
  ended.push_back(state);
  std::reverse(ended.begin(), ended.end());
  return {call::cat(outputs, 0), concatenate(ended)};
}

LayerResult run_packed_reverse(Cell cell, const Tensor& input, const IntView batch_sizes, const State& start,
                               const Params& p) {
  const Tensor gates = p.of_input(input);
  int64_t offset = gates.size(0), last = batch_sizes.back();
  State state = slice(start, 0, last);
  std::vector<Tensor> outputs;
  for (size_t i = batch_sizes.size(); i-- > 0;) {
    const int64_t batch = batch_sizes[i];
    if (batch > last) {
      state = concatenate({state, slice(start, last, batch - last)});
      last = batch;
    }
    offset -= batch;
    state = step(cell, at::narrow(gates, 0, offset, batch), state, p, true);
    outputs.push_back(state.h);
  }
  std::reverse(outputs.begin(), outputs.end());
  return {call::cat(outputs, 0), state};
}

LayerResult run_direction(Cell cell, const Tensor& input, const IntView batch_sizes, const State& start,
                          const Params& p, bool reverse) {
  if (batch_sizes.empty()) return run_full(cell, input, start, p, reverse);
  return reverse ? run_packed_reverse(cell, input, batch_sizes, start, p)
                 : run_packed(cell, input, batch_sizes, start, p);
}

// ---- the stack -----------------------------------------------------------------------------------------------------

std::vector<Params> gather(TensorList list, bool biases, bool projections) {
  const size_t each = 2 + (biases ? 2 : 0) + (projections ? 1 : 0);
  TN_CHECK(list.size() % each == 0, "got an incorrect number of RNN parameters");
  std::vector<Params> all;
  for (size_t i = 0; i < list.size(); i += each) {
    Params p{list[i], list[i + 1], {}, {}, {}};
    if (biases) p.b_ih = list[i + 2], p.b_hh = list[i + 3];
    if (projections) p.w_hr = list[i + each - 1];
    all.push_back(std::move(p));
  }
  return all;
}

struct StackResult {
  Tensor output;
  std::vector<State> finals;
};

StackResult run_stack(Cell cell, const Tensor& input, const Tensor& batch_sizes, const std::vector<State>& starts,
                      const std::vector<Params>& params, const RnnOptions& o) {
  std::vector<int64_t> sizes;
  if (batch_sizes.defined()) {
    TN_CHECK(batch_sizes.dtype() == ScalarType::Long && batch_sizes.dim() == 1 && batch_sizes.numel() > 0,
             "expected batch_sizes to be a 1-D int64 tensor with elements, got ", scalar_type_name(batch_sizes.dtype()),
             " of shape ", batch_sizes.sizes());
    const Tensor dense = contiguous(batch_sizes);
    sizes.assign(dense.data<int64_t>(), dense.data<int64_t>() + dense.numel());
  }
  const size_t directions = o.bidirectional ? 2 : 1, layers = static_cast<size_t>(o.num_layers);
  TN_CHECK(starts.size() == layers * directions, "Expected more hidden states in stacked_rnn");
  TN_CHECK(params.size() == layers * directions, "Expected more RNN parameters in stacked_rnn");
  StackResult result{input, {}};
  for (size_t layer = 0; layer < layers; ++layer) {
    std::vector<Tensor> outputs;
    for (size_t d = 0; d < directions; ++d) {
      const size_t i = layer * directions + d;
      LayerResult one = run_direction(cell, result.output, sizes, starts[i], params[i], d == 1);
      outputs.push_back(std::move(one.output));
      result.finals.push_back(std::move(one.final));
    }
    result.output = directions == 1 ? outputs[0] : call::cat(outputs, outputs[0].dim() - 1);
    if (o.dropout != 0 && o.train && layer + 1 < layers) result.output = call::dropout(result.output, o.dropout, true);
  }
  return result;
}

void check_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, int64_t hidden_size, const char* label) {
  TN_CHECK(input.size(1) == w_ih.size(1), "input has inconsistent input_size: got ", input.size(1), " expected ",
           w_ih.size(1));
  TN_CHECK(input.size(0) == hx.size(0), "Input batch size ", input.size(0), " doesn't match hidden", label,
           " batch size ", hx.size(0));
  TN_CHECK(hx.size(1) == hidden_size, "hidden", label, " has inconsistent hidden_size: got ", hx.size(1), ", expected ",
           hidden_size);
}

Params cell_params(const Tensor& w_ih, const Tensor& w_hh, OptionalTensor b_ih, OptionalTensor b_hh) {
  return {w_ih, w_hh, b_ih ? *b_ih : Tensor(), b_hh ? *b_hh : Tensor(), {}};
}

}  // namespace

std::tuple<Tensor, Tensor> lstm_cell(const Tensor& input, TensorList hx, const Tensor& w_ih, const Tensor& w_hh,
                                     OptionalTensor b_ih, OptionalTensor b_hh) {
  TN_CHECK(hx.size() == 2, "lstm_cell expects two hidden states");
  check_cell(input, hx[0], w_ih, w_hh.size(1), "0");
  check_cell(input, hx[1], w_ih, w_hh.size(0) / 4, "1");
  State next = lstm_step(input, {hx[0], hx[1]}, cell_params(w_ih, w_hh, b_ih, b_hh), false);
  return {std::move(next.h), std::move(next.c)};
}

Tensor simple_cell(Cell cell, const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                   OptionalTensor b_ih, OptionalTensor b_hh) {
  check_cell(input, hx, w_ih, w_hh.size(1), "0");
  return step(cell, input, {hx, {}}, cell_params(w_ih, w_hh, b_ih, b_hh), false).h;
}

std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, const Tensor& batch_sizes, TensorList hx,
                                        TensorList params, const RnnOptions& o) {
  TN_CHECK(hx.size() == 2, "lstm expects two hidden states");
  const bool projections = hx[0].size(2) != hx[1].size(2);
  const std::vector<Tensor> h = at::unbind(hx[0], 0), c = at::unbind(hx[1], 0);
  std::vector<State> starts;
  for (size_t i = 0; i < std::min(h.size(), c.size()); ++i) starts.push_back({h[i], c[i]});
  StackResult result = run_stack(Cell::Lstm, o.batch_first ? at::transpose(input, 0, 1) : input, batch_sizes, starts,
                                 gather(params, o.has_biases, projections), o);
  if (o.batch_first) at::transpose_(result.output, 0, 1);
  std::vector<Tensor> last_h, last_c;
  for (const State& s : result.finals) {
    last_h.push_back(s.h);
    last_c.push_back(s.c);
  }
  Tensor all_h = call::stack(last_h, 0), all_c = call::stack(last_c, 0);
  return {std::move(result.output), std::move(all_h), std::move(all_c)};
}

std::tuple<Tensor, Tensor> simple_rnn(Cell cell, const Tensor& input, const Tensor& batch_sizes, const Tensor& hx,
                                      TensorList params, const RnnOptions& o) {
  std::vector<State> starts;
  for (const Tensor& h : at::unbind(hx, 0)) starts.push_back({h, {}});
  StackResult result = run_stack(cell, o.batch_first ? at::transpose(input, 0, 1) : input, batch_sizes, starts,
                                 gather(params, o.has_biases, false), o);
  if (o.batch_first) at::transpose_(result.output, 0, 1);
  std::vector<Tensor> last;
  for (const State& s : result.finals) last.push_back(s.h);
  Tensor all = call::stack(last, 0);
  return {std::move(result.output), std::move(all)};
}

}  // namespace tn::composite
