// Recurrent cells and layers, as upstream composes them. They only call the door.
#pragma once
#include <tuple>

#include "runtime/scalar.h"
#include "runtime/tensor.h"

namespace tn::composite {

enum class Cell : uint8_t { Lstm, Gru, Tanh, Relu };

std::tuple<Tensor, Tensor> lstm_cell(const Tensor& input, TensorList hx, const Tensor& w_ih, const Tensor& w_hh,
                                     OptionalTensor b_ih, OptionalTensor b_hh);
// Any but Lstm.
Tensor simple_cell(Cell cell, const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                   OptionalTensor b_ih, OptionalTensor b_hh);

struct RnnOptions {
  bool has_biases;
  int64_t num_layers;
  double dropout;
  bool train;
  bool bidirectional;
  bool batch_first = false;
};

// batch_sizes: undefined, or that of a packed sequence.
std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, const Tensor& batch_sizes, TensorList hx,
                                        TensorList params, const RnnOptions& options);
std::tuple<Tensor, Tensor> simple_rnn(Cell cell, const Tensor& input, const Tensor& batch_sizes, const Tensor& hx,
                                      TensorList params, const RnnOptions& options);

Tensor pack_padded_sequence_backward(const Tensor& grad, IntView input_size, const Tensor& batch_sizes,
                                     bool batch_first);
std::tuple<Tensor, Tensor> pad_packed_sequence(const Tensor& data, const Tensor& batch_sizes, bool batch_first,
                                               const Scalar& padding, int64_t total_length);

}  // namespace tn::composite
