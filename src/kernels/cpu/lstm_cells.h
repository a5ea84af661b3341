// The element-wise half of an LSTM step for one row of the batch, vectorised (Highway, dynamic
// dispatch). Gate blocks i, j, f, o lie next to each other, `hidden` elements each.
#pragma once

#include <cstdint>

namespace paceline {

struct LstmForwardRow {
  float* gates;         // (4·hidden): products of the weights in, activated gates out
  const float* biases;  // (4·hidden)
  float forget_bias;
  const float* cell_before;  // (hidden), as the rest
  float* cell;
  float* output;
  std::int64_t hidden;
};
void lstm_forward(const LstmForwardRow& row);

struct LstmBackwardRow {
  const float* gates;        // (4·hidden), activated
  const float* cell_before;  // (hidden), as the rest
  const float* cell;
  const float* d_output;   // null: zero
  const float* d_state_h;  // from the step after this
  float* d_state_c;        // from the step after this in, for the step before out
  float* d_products;       // (4·hidden): the gradient of what went into the activations
  std::int64_t hidden;
};
void lstm_backward(const LstmBackwardRow& row);

}  // namespace paceline
