// The sizes of the ptb language model (Zaremba et al., arXiv 1409.2329).
#pragma once

#include <cstdint>
#include <span>

#include "models/model.h"

namespace paceline::models {

struct PtbConfig {
  double init_scale = 0.1;
  double learning_rate = 1.0;
  double max_grad_norm = 5;
  std::int64_t layers = 2;
  std::int64_t unroll = 20;  // time steps per batch
  std::int64_t hidden = 200;
  std::int64_t full_rate_epochs = 4;
  std::int64_t epochs = 13;
  double keep_prob = 1.0;
  double rate_decay = 0.5;
  std::int64_t batch = 20;
  std::int64_t vocabulary = 10000;

  /// Of the learning rate: rate_decay^max(epoch + 1 − full_rate_epochs, 0), epochs from 0.
  double rate_factor(std::int64_t epoch) const;
};

std::span<const HyperParameter> ptb_parameters();
/// Of --size, --set, --batch and --epochs. Throws kUsage.
PtbConfig ptb_config(const ModelOptions& options);

}  // namespace paceline::models
