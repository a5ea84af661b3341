// The element-wise half of an LSTM step for one row of the batch, vectorised (Highway, dynamic
// dispatch). The blocks of gates i, j, f and o are contiguous, with `hidden` elements each.
#pragma once

#include <cstdint>

namespace paceline {

struct LstmForwardRow {
  float* gates;         // (4·hidden): in, products with the weights; out, activated gates
  const float* biases;  // (4·hidden)
  float forget_bias;
  const float* cell_before;  // (hidden), as all below
  float* cell;
  float* output;
  std::int64_t hidden;
};
void lstm_forward(const LstmForwardRow& row);

struct LstmBackwardRow {
  const float* gates;        // (4·hidden), activated
  const float* cell_before;  // (hidden), like all pointers below that give no shape
  const float* cell;
  const float* d_output;   // null: zero
  const float* d_state_h;  // from the step after this one
  float* d_state_c;  // in: the gradient from the step after this one; out: that for the step before
  float* d_products;  // (4·hidden): the gradient of the activations' inputs
  std::int64_t hidden;
};
void lstm_backward(const LstmBackwardRow& row);

}  // namespace paceline
