#include "cli/automatic_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>

#include "base/print_text.h"
#include "base/printed.h"
#include "paceline/error.h"
#include "params/strategy/strategies.h"

namespace paceline {
namespace {

constexpr const char* kStrategyFlag = "--strategy";
constexpr double kWorthOfLocalSteps = 1 / 1.1;  // they must bring a tenth
constexpr double kWorthOfOneProcess = 1.02;     // more tasks must bring a fiftieth

double worth(const Prediction& made) {
  if (made.shape.makes_local_steps()) return made.steps_per_s * kWorthOfLocalSteps;
  return made.shape.is_one_process() ? made.steps_per_s * kWorthOfOneProcess : made.steps_per_s;
}

std::string words_of(const JobShape& shape) {
  if (shape.is_one_process()) return "one process";
  return fmt::format("--ps {} --workers {} --strategy {}", shape.ps, shape.workers,
                     shape.kind().name);
}

bool goes_with(const std::vector<std::string>& arguments,
               const std::function<void(const std::vector<std::string>&)>& check) {
  try {
    check(arguments);
    return true;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUsage) return false;
    throw;
  }
}

}  // namespace

bool leaves_shape_open(const FlagValues& values, const Cluster& cluster) {
  const bool starts_tasks =
      cluster.process == Cluster::Process::kLauncher && !cluster.existing_servers;
  return values.text(kStrategyFlag) == kAutomatic && !values.given("--predict") &&
         (starts_tasks || cluster.process == Cluster::Process::kAlone);
}

std::vector<Prediction> by_preference(std::vector<Prediction> predictions) {
  std::ranges::stable_sort(predictions, std::greater{}, worth);
  return predictions;
}

std::vector<std::string> with_shape(const std::vector<std::string>& arguments,
                                    const FlagValues& values, const JobShape& shape) {
  std::vector<std::string> chosen;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == fmt::format("{}={}", kStrategyFlag, kAutomatic)) continue;
    if (arguments[i] == kStrategyFlag && i + 1 < arguments.size()) {
      ++i;
      continue;
    }
    chosen.push_back(arguments[i]);
  }
  const auto add = [&](const std::string& flag, int count) {
    if (!values.on_command_line(flag)) chosen.insert(chosen.end(), {flag, std::to_string(count)});
  };
  if (!shape.is_one_process()) {
    add("--ps", shape.ps);
    add("--workers", shape.workers);
  }
  chosen.insert(chosen.end(), {kStrategyFlag, std::string(shape.kind().name)});
  return chosen;
}

std::vector<std::string> with_fastest_shape(
    const std::vector<std::string>& arguments, const FlagValues& values,
    std::vector<Prediction> predictions,
    const std::function<void(const std::vector<std::string>&)>& check) {
  const auto say = [&](const std::string& text) {
    if (!values.given("--quiet")) print_text(stdout, "--strategy auto: " + text + "\n");
  };
  predictions = by_preference(std::move(predictions));
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    std::vector<std::string> chosen = with_shape(arguments, values, predictions[i].shape);
    if (!goes_with(chosen, check)) continue;
    std::string text =
        fmt::format("of {} takes {}, of which {} steps/s are expected",
                    counted(std::int64_t(predictions.size()), "way"),
                    words_of(predictions[i].shape), rounded(predictions[i].steps_per_s));
    if (i + 1 < predictions.size()) {
      text += fmt::format(" (next: {}, {})", words_of(predictions[i + 1].shape),
                          rounded(predictions[i + 1].steps_per_s));
    }
    say(text);
    return chosen;
  }
  say("no speed can be expected of this job; takes the usual strategy");
  return arguments;
}

}  // namespace paceline
