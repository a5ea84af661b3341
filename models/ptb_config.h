// The configuration of the ptb language model, with the published sizes (Zaremba et al., arXiv
// 1409.2329).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "paceline/program.h"

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

  /// The factor on the learning rate in an epoch, from 0: rate_decay^max(epoch + 1 −
  /// full_rate_epochs, 0).
  double rate_factor(std::int64_t epoch) const;
};

/// --data DIR: the folder of the text.
Setting<std::string> ptb_data_setting();
/// The settings of ptb.
std::vector<AnySetting> ptb_settings();
/// The configuration of the size that the settings name, changed by the other settings that were
/// given.
PtbConfig ptb_config(const Settings& settings);

}  // namespace paceline::models
