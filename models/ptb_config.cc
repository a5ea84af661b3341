#include "models/ptb_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "models/settings.h"
#include "paceline/error.h"

namespace paceline::models {
namespace {

using Defaults = std::array<std::pair<const char*, const char*>, 8>;

struct Size {
  const char* name;
  Defaults defaults;
};

constexpr std::array<Size, 4> kSizes = {{
    {"small",
     {{{"init_scale", "0.1"},
       {"max_grad_norm", "5"},
       {"hidden", "200"},
       {"unroll", "20"},
       {"full_rate_epochs", "4"},
       {"epochs", "13"},
       {"rate_decay", "0.5"},
       {"keep_prob", "1"}}}},
    {"medium",
     {{{"init_scale", "0.05"},
       {"max_grad_norm", "5"},
       {"hidden", "650"},
       {"unroll", "35"},
       {"full_rate_epochs", "6"},
       {"epochs", "39"},
       {"rate_decay", "0.8"},
       {"keep_prob", "0.5"}}}},
    {"large",
     {{{"init_scale", "0.04"},
       {"max_grad_norm", "10"},
       {"hidden", "1500"},
       {"unroll", "35"},
       {"full_rate_epochs", "14"},
       {"epochs", "55"},
       {"rate_decay", "0.8695652173913043"},  // 1/1.15
       {"keep_prob", "0.35"}}}},
    {"test",
     {{{"init_scale", "0.1"},
       {"max_grad_norm", "1"},
       {"hidden", "2"},
       {"unroll", "2"},
       {"full_rate_epochs", "1"},
       {"epochs", "1"},
       {"rate_decay", "0.5"},
       {"keep_prob", "1"}}}},
}};

const Size& size_named(const std::string& name) {
  const auto found = std::find_if(kSizes.begin(), kSizes.end(),
                                  [&](const Size& size) { return name == size.name; });
  if (found != kSizes.end()) return *found;
  throw Error(ErrorCode::kUsage,
              fmt::format("--size {}: must be small, medium, large or test", name));
}

Settings settings_of(const ModelOptions& options) {
  Settings settings("ptb", ptb_parameters(), options.set);
  for (const auto& [name, value] : size_named(options.size).defaults) {
    settings.set_default(name, value);
  }
  settings.set_default("batch", options.batch);
  settings.set_default("epochs", options.epochs);
  return settings;
}

}  // namespace

double PtbConfig::rate_factor(std::int64_t epoch) const {
  return std::pow(rate_decay, double(std::max<std::int64_t>(epoch + 1 - full_rate_epochs, 0)));
}

std::span<const HyperParameter> ptb_parameters() {
  static const std::array<HyperParameter, 12> parameters = {{
      {"init_scale", "0.1; medium 0.05, large 0.04", "weights are initialised uniformly in ± this"},
      {"learning_rate", "1", "SGD's learning rate in the first epochs"},
      {"max_grad_norm", "5; large 10, test 1", "gradients are clipped to this global norm"},
      {"layers", "2; test 1", "LSTM layers"},
      {"unroll", "20; medium and large 35, test 2", "time steps per batch"},
      {"hidden", "200; medium 650, large 1500, test 2",
       "units of a layer and of a word's embedding"},
      {"full_rate_epochs", "4; medium 6, large 14, test 1",
       "epochs before the learning rate decays"},
      {"epochs", "13; medium 39, large 55, test 1", "number of epochs"},
      {"rate_decay", "0.5; medium 0.8, large 1/1.15",
       "factor on the learning rate in each later epoch"},
      {"keep_prob", "1; medium 0.5, large 0.35",
       "probability that dropout keeps a value; 1: no dropout"},
      {"batch", "20", "rows of text per step"},
      {"vocabulary", "10000", "number of words in the vocabulary, the most frequent ones"},
  }};
  return parameters;
}

PtbConfig ptb_config(const ModelOptions& options) {
  Settings settings = settings_of(options);
  settings.set_default("learning_rate", "1");
  settings.set_default("layers", options.size == "test" ? "1" : "2");
  constexpr double kMost = 1e9;
  return {.init_scale = settings.number("init_scale", 0, kMost),
          .learning_rate = settings.number("learning_rate", 0, kMost),
          .max_grad_norm = settings.number("max_grad_norm", 0, kMost),
          .layers = settings.whole("layers", 1),
          .unroll = settings.whole("unroll", 1),
          .hidden = settings.whole("hidden", 1),
          .full_rate_epochs = settings.whole("full_rate_epochs", 0),
          .epochs = settings.whole("epochs", 1),
          .keep_prob = settings.number("keep_prob", 1e-3, 1),
          .rate_decay = settings.number("rate_decay", 0, kMost),
          .batch = settings.whole("batch", 1),
          .vocabulary = settings.whole("vocabulary", 1)};
}

}  // namespace paceline::models
