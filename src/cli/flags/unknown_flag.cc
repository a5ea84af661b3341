#include "cli/flags/unknown_flag.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/nearest.h"

namespace paceline {
namespace {

/// A flag in scripts of other systems, and the flag that replaces it here.
struct ForeignFlag {
  std::string_view name, here;
};

// From TensorFlow's tutorials and benchmarks (tf_cnn_benchmarks, the models ptb, cifar10 and
// resnet), from torchrun's examples, and from the scripts of published reports.
constexpr ForeignFlag kForeign[] = {
    {"--data-path", "--data DIR"},
    {"--train-data-path", "--data DIR"},
    {"--train-data-dir", "--data DIR"},
    {"--train-data", "--data DIR"},
    {"--data-dir", "--data DIR"},
    {"--dataset-dir", "--data DIR"},
    {"--eval-data-path", "--eval-data DIR"},
    {"--eval-data-dir", "--eval-data DIR"},
    {"--sync-replicas", "--strategy sync"},
    {"--issync", "--strategy sync"},
    {"--num-gpus", "--towers N"},
    {"--num-devices", "--towers N"},
    {"--gpus", "--towers N"},
    {"--train-dir", "--out DIR"},
    {"--log-root", "--out DIR"},
    {"--log-dir", "--out DIR"},
    {"--logdir", "--out DIR"},
    {"--model-dir", "--out DIR"},
    {"--output-dir", "--out DIR"},
    {"--out-dir", "--out DIR"},
    {"--save-path", "--out DIR"},
    {"--save-dir", "--out DIR"},
    {"--checkpoint-dir", "--out DIR"},
    {"--max-steps", "--steps N"},
    {"--train-steps", "--steps N"},
    {"--training-steps", "--steps N"},
    {"--num-steps", "--steps N"},
    {"--num-batches", "--steps N"},
    {"--num-epochs", "--epochs N"},
    {"--train-epochs", "--epochs N"},
    {"--max-epochs", "--epochs N"},
    {"--protocol", "--link auto|shm|tcp"},
    {"--server-protocol", "--link auto|shm|tcp"},
    {"--batch-size", "--batch N"},
    {"--train-batch-size", "--batch N"},
    {"--variable-update", "--strategy async|sync|allreduce"},
    {"--num-workers", "--workers N"},
    {"--num-ps", "--ps M"},
    {"--num-parameter-servers", "--ps M"},
    {"--ckpt", "--init-from DIR"},
};

/// A flag that version 0.1.0 had, and what users do instead.
struct GoneFlag {
  std::string_view name, instead;
};

constexpr GoneFlag kGone[] = {
    {"--torn-free", "values of one moment come from rounds, as in --strategy sync"},
    {"--outer-delay", "as many changes count as one mean as there are workers"},
};

std::string_view first_word(std::string_view text) { return text.substr(0, text.find(' ')); }

// Returns the setting that a flag means, if there is one: "learning_rate" for "--learning-rate".
std::string setting_meant(const CommandLine& line, std::string_view name) {
  std::string setting(name.substr(std::min<std::size_t>(2, name.size())));
  std::ranges::replace(setting, '-', '_');
  const auto set = std::ranges::find(line.flags, "--set", &Flag::name);
  if (set == line.flags.end()) return "";
  return std::ranges::count(set->completions, setting + "=") > 0 ? setting : "";
}

}  // namespace

std::string unknown_flag_hint(const CommandLine& line, std::string_view name) {
  if (const std::string setting = setting_meant(line, name); !setting.empty())
    return fmt::format("; a hyper-parameter is given as --set {}=VALUE", setting);
  std::vector<std::string_view> names;
  for (const Flag& flag : line.flags) {
    if (!flag.group.empty()) names.emplace_back(flag.name);
  }
  const auto gone = std::ranges::find(kGone, name, &GoneFlag::name);
  if (gone != std::end(kGone) && std::ranges::count(names, "--strategy") > 0)
    return fmt::format("; it is gone: {}", gone->instead);
  const auto foreign = std::ranges::find(kForeign, name, &ForeignFlag::name);
  if (foreign != std::end(kForeign) && std::ranges::count(names, first_word(foreign->here)) > 0)
    return fmt::format("; here it is {}", foreign->here);
  return did_you_mean(name, names);
}

}  // namespace paceline
