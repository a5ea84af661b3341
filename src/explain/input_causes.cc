// Causes in the input of a worker.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/grouped_digits.h"
#include "base/printed.h"
#include "explain/causes.h"

namespace paceline {
namespace {

constexpr double kLeastInput = 0.05;
// An input this many times as fast as the rest of the step is not limited by its stages.
constexpr double kAmple = 1.25;
constexpr double kManyBad = 0.1;
constexpr double kCoreForInput = 0.6;

std::string rate_text(double rate, const std::string& unit) {
  return fmt::format("{} {}/s", grouped_digits(std::llround(rate)), unit);
}

class SlowInput {
 public:
  /// `least` is the share of time that the input takes in the worker where it takes least.
  SlowInput(const RunFacts& facts, const TaskReport& worker, double least)
      : facts_(facts),
        worker_(worker),
        least_(least),
        share_(RunFacts::share(worker, "input")),
        makes_(worker.input ? worker.input->capacity() : 0),
        takes_(worker.examples_per_s.value_or(0) / std::max(0.01, 1 - share_)) {}

  Finding finding() const {
    if (!worker_.input || worker_.input->slowest() == nullptr) return without_numbers();
    const InputReport& input = *worker_.input;
    // The time of the input, unlike that of the steps, also includes an evaluation after training.
    const double seconds = std::min(input.seconds, worker_.seconds.value_or(input.seconds));
    if (input.waited < 0.5 * share_ * seconds) return copies();
    const bool bad = double(input.bad) > kManyBad * double(input.bad + input.records);
    if (!bad && makes_ > kAmple * takes_) return cores();
    const std::string& slowest = input.slowest()->name;
    const std::string limit =
        fmt::format("The input of {} is the limit, at {}: with {} it could make {}.", worker_.task,
                    slowest, threads(), rates());
    if (bad) {
      return told(Limit::kBadRecords,
                  limit + fmt::format(" {:.0f}% of the records were bad, and left out.",
                                      100 * double(input.bad) / double(input.bad + input.records)),
                  "With whole records");
    }
    if (slowest == "read") {
      return told(Limit::kDisk, limit,
                  "With files on a faster disk, or in memory (the stage cache)");
    }
    return with_threads(
        told(Limit::kInput, limit,
             "With a faster stage, or its results kept in memory (the stage cache)"));
  }

 private:
  // If the input is about as slow for every worker, a cure speeds all of them up.
  double gain(double saved) const {
    constexpr double kAlike = 0.6;
    const double all = least_ >= kAlike * share_ ? saved * least_ / share_ : 0;
    return std::max(facts_.gain_without(worker_, saved), RunFacts::gain_without(all));
  }

  Finding told(Limit cause, std::string sentence, std::string advice = {}) const {
    return {.cause = cause,
            .task = worker_.task,
            .sentence = std::move(sentence),
            .advice = std::move(advice),
            .gain = gain(share_)};
  }
  std::string threads() const { return counted(worker_.input->most_threads, "thread"); }
  // Returns "300 images/s, and the rest of the step could take 646 images/s".
  std::string rates() const {
    return fmt::format("{}, and the rest of the step could take {}",
                       rate_text(makes_, worker_.unit), rate_text(takes_, worker_.unit));
  }

  // Making batches ahead takes cores, too, so the free cores bound the gain.
  Finding without_numbers() const {
    Finding found = told(
        Limit::kInput,
        fmt::format("Making batches takes {:.0f}% of the time of {}.", 100 * share_, worker_.task),
        "With batches that are made ahead, on other threads");
    const double busy = worker_.use.pressure.machine_cores.value_or(0) / facts_.cores();
    found.gain = std::min(found.gain, gain(std::clamp(1 - busy, 0.0, share_)));
    return found;
  }
  Finding copies() const {
    return told(Limit::kInputCopy,
                fmt::format("Batches of {} were ready when they were wanted; {:.0f}% of the time "
                            "went to copying them to where the step reads them.",
                            worker_.task, 100 * share_));
  }
  Finding cores() const {
    return told(Limit::kInputCores,
                fmt::format("{} waited {:.0f}% of the time for batches, though with {} the input "
                            "could make {}: its threads lacked cores.",
                            worker_.task, 100 * share_, threads(), rates()),
                "With free cores, or fewer --threads for the kernels");
  }
  // More threads make more batches, as long as there are free cores for them.
  Finding with_threads(Finding found) const {
    const int most = worker_.input->most_threads;
    const double free = facts_.cores() - worker_.use.pressure.machine_cores.value_or(0);
    if (free < kCoreForInput || most >= facts_.cores()) return found;
    const double ratio = std::min(takes_, makes_ * facts_.cores() / std::max(1, most)) /
                         std::max(1.0, worker_.examples_per_s.value_or(1));
    found.advice = fmt::format("--input-threads {}", facts_.cores());
    if (ratio > 1) found.gain = gain(1 - 1 / ratio);
    return found;
  }

  const RunFacts& facts_;
  const TaskReport& worker_;
  const double least_, share_, makes_, takes_;
};

}  // namespace

std::vector<Finding> slow_input(const RunFacts& facts) {
  double least = 1;
  for (const TaskReport* const worker : facts.workers()) {
    least = std::min(least, RunFacts::share(*worker, "input"));
  }
  std::vector<Finding> found;
  for (const TaskReport* const worker : facts.workers()) {
    if (RunFacts::share(*worker, "input") < kLeastInput) continue;
    found.push_back(SlowInput(facts, *worker, least).finding());
  }
  return found;
}

}  // namespace paceline
