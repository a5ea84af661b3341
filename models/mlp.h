// mlp: 256-4096-4096-256 on noise (TensorFlow issue 10145), a job of many parameters.
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
  std::int64_t layers = 2;  // hidden ones
  Adam rule{.learning_rate = 1e-4f};
};

struct MlpGraph {
  Value x, y;  // (batch, features), standard normal in each step
  Value predictions = {};
  Value loss = {};
};

/// The configuration that settings of mlp_model() describe.
MlpConfig mlp_config(const Settings& settings);
/// Dense layers with ReLU after each, Glorot-uniform weights, zero biases, mean squared error.
MlpGraph build_mlp(Graph& graph, const MlpConfig& config);

/// Returns SessionOptions::modules: of one nn.Sequential, where a ReLU follows each layer.
std::map<std::string, std::string> mlp_modules(const MlpConfig& config);

const Model& mlp_model();

}  // namespace paceline::models
