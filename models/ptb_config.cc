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

// A setting whose usual value depends on the size: whole numbers are from 1 on, others from 0.
template <typename Number>
Setting number_setting(const char* name, Number value, const char* default_text, const char* help,
                       double least = std::integral<Number> ? 1 : 0,
                       double most = Setting::kNoLimit) {
  return {.name = name,
          .value = value,
          .help = help,
          .least = least,
          .most = most,
          .default_text = default_text};
}

Setting epochs_of_size() {
  Setting epochs = epochs_setting(13);
  epochs.default_text = "13; medium 39, large 55, test 1";
  return epochs;
}

Setting text_folder() {
  Setting data = data_setting("");
  data.help = "The folder with ptb.train.txt, ptb.valid.txt and ptb.test.txt";
  data.placeholder = "DIR";
  return data;
}

template <typename Number>
void take(const Settings& settings, const char* name, Number& value) {
  if (!settings.given(name)) return;
  if constexpr (std::integral<Number>) {
    value = settings.whole(name);
  } else {
    value = settings.number(name);
  }
}

}  // namespace

double PtbConfig::rate_factor(std::int64_t epoch) const {
  return std::pow(rate_decay, double(std::max<std::int64_t>(epoch + 1 - full_rate_epochs, 0)));
}

std::vector<Setting> ptb_settings() {
  return {
      batch_setting(20),
      epochs_of_size(),
      text_folder(),
      {.name = "size",
       .value = "small",
       .help = "The size of the model, as published",
       .choices = {"small", "medium", "large", "test"},
       .flag = true},
      number_setting("init_scale", 0.1, "0.1; medium 0.05, large 0.04",
                     "Weights are initialised uniformly in ± this"),
      number_setting("learning_rate", 1.0, "", "SGD's learning rate in the first epochs"),
      number_setting("max_grad_norm", 5.0, "5; large 10, test 1",
                     "Gradients are clipped to this global norm"),
      number_setting("layers", 2, "2; test 1", "LSTM layers", 1, 10'000),
      number_setting("unroll", 20, "20; medium and large 35, test 2", "Time steps per batch"),
      number_setting("hidden", 200, "200; medium 650, large 1500, test 2",
                     "Units of a layer and of a word's embedding"),
      number_setting("full_rate_epochs", 4, "4; medium 6, large 14, test 1",
                     "Epochs before the learning rate decays", 0),
      number_setting("rate_decay", 0.5, "0.5; medium 0.8, large 1/1.15",
                     "Factor on the learning rate in each later epoch"),
      number_setting("keep_prob", 1.0, "1; medium 0.5, large 0.35",
                     "Probability that dropout keeps a value; 1: no dropout", 1e-3, 1),
      number_setting("vocabulary", 10000, "",
                     "Number of words in the vocabulary, the most frequent ones"),
  };
}

PtbConfig ptb_config(const Settings& settings) {
  PtbConfig config = config_of_size(settings.text("size"));
  take(settings, "init_scale", config.init_scale);
  take(settings, "learning_rate", config.learning_rate);
  take(settings, "max_grad_norm", config.max_grad_norm);
  take(settings, "layers", config.layers);
  take(settings, "unroll", config.unroll);
  take(settings, "hidden", config.hidden);
  take(settings, "full_rate_epochs", config.full_rate_epochs);
  take(settings, "epochs", config.epochs);
  take(settings, "keep_prob", config.keep_prob);
  take(settings, "rate_decay", config.rate_decay);
  take(settings, "batch", config.batch);
  take(settings, "vocabulary", config.vocabulary);
  return config;
}

}  // namespace paceline::models
