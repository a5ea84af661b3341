// The model mlp: dense layers of 256-4096-4096-256 units on noise (TensorFlow issue 10145), a
// training with many parameters.
#pragma once

#include <map>
#include <string>

#include "models/model.h"
#include "paceline/graph.h"
#include "paceline/rule.h"

namespace paceline::models {

struct MlpConfig {
  std::int64_t batch = 128;
  std::int64_t features = 256;  // of the input and of the output
  std::int64_t hidden = 4096;
  std::int64_t layers = 2;  // hidden layers
  Adam rule{.learning_rate = 1e-4f};
};

struct MlpGraph {
  Value x, y;  // (batch, features), standard normal in each step
  Value predictions = {};
  Value loss = {};
};

/// The configuration that settings of mlp_model() describe.
MlpConfig mlp_config(const Settings& settings);
/// Builds dense layers, each followed by ReLU, with Glorot-uniform weights and zero biases. The
/// loss is the mean squared error.
MlpGraph build_mlp(Graph& graph, const MlpConfig& config);

/// Returns SessionOptions::modules: all layers are in one nn.Sequential, where a ReLU follows each.
std::map<std::string, std::string> mlp_modules(const MlpConfig& config);

const Model& mlp_model();

}  // namespace paceline::models
