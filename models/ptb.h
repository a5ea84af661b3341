// ptb: a word language model (Penn Treebank), small, medium, large.
#pragma once

#include "models/model.h"

namespace paceline::models {

class PtbModel : public Model {
 public:
  std::string_view name() const override { return "ptb"; }
  std::string_view summary() const override {
    return "LSTM word language model on Penn Treebank's or generated text, SGD";
  }
  std::span<const std::string_view> flags() const override;
  std::span<const HyperParameter> hyper_parameters() const override;
  void check(const Cluster& cluster, const RunOptions& run,
             const ModelOptions& options) const override;
  void run(const Cluster& cluster, const RunOptions& run,
           const ModelOptions& options) const override;
  std::vector<StepGraph> step_graphs(const ModelOptions& options) const override;
};

}  // namespace paceline::models
