// All rules that change each element by itself, for tests of their kernels.
#pragma once

#include <string>
#include <vector>

#include "kernels/testing/custom_rules.h"
#include "paceline/rule.h"

namespace paceline {

struct NamedRule {
  std::string name;
  Rule rule;
};

inline std::vector<NamedRule> all_rules() {
  return {{"sgd", Sgd{0.1f}},
          {"momentum", Momentum{0.1f, 0.9f, false}},
          {"nesterov", Momentum{0.1f, 0.9f, true}},
          {"adam", Adam{0.01f}},
          {"adamw", AdamW{.learning_rate = 0.01f, .weight_decay = 0.2f}},
          {"adagrad", Adagrad{0.1f}},
          {"rmsprop", Rmsprop{0.01f}},
          {"rmsprop_momentum", Rmsprop{0.01f, 0.9f, 0.5f}},
          {"ftrl", Ftrl{0.1f, 0.05f, 0.3f}},
          {"delayed_nesterov", DelayedNesterov{0.1f, 0.9f, 3}},
          {"ema", Ema{0.9f}},
          {"add", Add{}},
          {"assign", Assign{}},
          {"written_adam", written_adam(0.01f)},
          {"lion", lion(0.01f)}};
}

}  // namespace paceline
