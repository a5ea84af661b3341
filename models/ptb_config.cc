#include "models/ptb_config.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <string>

namespace paceline::models {
namespace {

PtbConfig config_of_size(const std::string& size) {
  PtbConfig config;
  if (size == "medium") {
    config.init_scale = 0.05;
    config.hidden = 650;
    config.unroll = 35;
    config.full_rate_epochs = 6;
    config.epochs = 39;
    config.rate_decay = 0.8;
    config.keep_prob = 0.5;
  } else if (size == "large") {
    config.init_scale = 0.04;
    config.max_grad_norm = 10;
    config.hidden = 1500;
    config.unroll = 35;
    config.full_rate_epochs = 14;
    config.epochs = 55;
    config.rate_decay = 1 / 1.15;
    config.keep_prob = 0.35;
  } else if (size == "test") {
    config.max_grad_norm = 1;
    config.layers = 1;
    config.hidden = 2;
    config.unroll = 2;
    config.full_rate_epochs = 1;
    config.epochs = 1;
  }
  return config;
}

// Returns a setting whose default may depend on the size of the model. By default, whole numbers
// must be at least 1, other numbers at least 0.
template <typename Number>
Setting<Number> number_setting(const char* name, Number value, const char* default_text,
                               const char* help, double least = std::integral<Number> ? 1 : 0,
                               double most = Setting<Number>::kNoLimit) {
  return {.name = name,
          .value = value,
          .help = help,
          .least = least,
          .most = most,
          .default_text = default_text};
}

Setting<std::int64_t> epochs_of_size() {
  Setting<std::int64_t> epochs = epochs_setting(13);
  epochs.default_text = "13; medium 39, large 55, test 1";
  return epochs;
}

using Whole = std::int64_t;

/// The settings of ptb.
struct PtbSettings {
  Setting<Whole> batch = batch_setting(20);
  Setting<Whole> epochs = epochs_of_size();
  Setting<std::string> data = ptb_data_setting();
  Setting<std::string> size = {.name = "size",
                               .value = "small",
                               .help = "The size of the model, as published",
                               .choices = {"small", "medium", "large", "test"},
                               .flag = true};
  Setting<double> init_scale = number_setting("init_scale", 0.1, "0.1; medium 0.05, large 0.04",
                                              "Weights are initialised uniformly in ± this");
  Setting<double> learning_rate =
      number_setting("learning_rate", 1.0, "", "SGD's learning rate in the first epochs");
  Setting<double> max_grad_norm = number_setting("max_grad_norm", 5.0, "5; large 10, test 1",
                                                 "Gradients are clipped to this global norm");
  Setting<Whole> layers = number_setting<Whole>("layers", 2, "2; test 1", "LSTM layers", 1, 10'000);
  Setting<Whole> unroll = number_setting<Whole>("unroll", 20, "20; medium and large 35, test 2",
                                                "Time steps per batch");
  Setting<Whole> hidden =
      number_setting<Whole>("hidden", 200, "200; medium 650, large 1500, test 2",
                            "Units of a layer and of a word's embedding");
  Setting<Whole> full_rate_epochs =
      number_setting<Whole>("full_rate_epochs", 4, "4; medium 6, large 14, test 1",
                            "Epochs before the learning rate decays", 0);
  Setting<double> rate_decay = number_setting("rate_decay", 0.5, "0.5; medium 0.8, large 1/1.15",
                                              "Factor on the learning rate in each later epoch");
  Setting<double> keep_prob =
      number_setting("keep_prob", 1.0, "1; medium 0.5, large 0.35",
                     "Probability that dropout keeps a value; 1: no dropout", 1e-3, 1);
  Setting<Whole> vocabulary = number_setting<Whole>(
      "vocabulary", 10000, "", "Number of words in the vocabulary, the most frequent ones");
};

// Sets `value` to the value of the setting, if the user gave one.
template <typename T>
void take(const Settings& settings, const Setting<T>& setting, T& value) {
  if (settings.given(setting)) value = settings[setting];
}

}  // namespace

double PtbConfig::rate_factor(std::int64_t epoch) const {
  return std::pow(rate_decay, double(std::max<std::int64_t>(epoch + 1 - full_rate_epochs, 0)));
}

Setting<std::string> ptb_data_setting() {
  Setting<std::string> data = data_setting("");
  data.help = "The folder with ptb.train.txt, ptb.valid.txt and ptb.test.txt";
  data.placeholder = "DIR";
  return data;
}

std::vector<AnySetting> ptb_settings() {
  const PtbSettings own;
  return {own.batch,         own.epochs,           own.data,
          own.size,          own.init_scale,       own.learning_rate,
          own.max_grad_norm, own.layers,           own.unroll,
          own.hidden,        own.full_rate_epochs, own.rate_decay,
          own.keep_prob,     own.vocabulary};
}

PtbConfig ptb_config(const Settings& settings) {
  const PtbSettings own;
  PtbConfig config = config_of_size(settings[own.size]);
  take(settings, own.init_scale, config.init_scale);
  take(settings, own.learning_rate, config.learning_rate);
  take(settings, own.max_grad_norm, config.max_grad_norm);
  take(settings, own.layers, config.layers);
  take(settings, own.unroll, config.unroll);
  take(settings, own.hidden, config.hidden);
  take(settings, own.full_rate_epochs, config.full_rate_epochs);
  take(settings, own.epochs, config.epochs);
  take(settings, own.keep_prob, config.keep_prob);
  take(settings, own.rate_decay, config.rate_decay);
  take(settings, own.batch, config.batch);
  take(settings, own.vocabulary, config.vocabulary);
  return config;
}

}  // namespace paceline::models
