// The three texts of ptb, as batches for one worker.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/ptb_config.h"
#include "paceline/text.h"

namespace paceline::models {

struct PtbData {
  TextBatches train, valid;  // of this worker's part
  TextBatches test;          // all of it, one row, one step
};

/// Reads ptb.train.txt, ptb.valid.txt and ptb.test.txt of `folder`; the vocabulary is the training
/// text's. Throws kNotFound, kDataLoss, and kInvalidArgument when a part gives no batch.
PtbData read_ptb(const std::string& folder, const PtbConfig& config, int worker, int workers);

/// exp(costs ÷ time steps): costs are sums over time, means over the batch.
class Perplexity {
 public:
  void add(double cost, std::int64_t time_steps) {
    cost_ += cost;
    time_steps_ += time_steps;
  }
  std::int64_t time_steps() const { return time_steps_; }
  double value() const;

 private:
  double cost_ = 0;
  std::int64_t time_steps_ = 0;
};

}  // namespace paceline::models
