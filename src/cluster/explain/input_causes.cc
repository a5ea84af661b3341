// Causes in the input of a worker.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/grouped_digits.h"
#include "base/printed.h"
#include "cluster/explain/causes.h"

namespace paceline {
namespace {

constexpr double kLeastInput = 0.05;
constexpr double kAmple = 1.25;  // times what the step takes: the stages are not what limits it
constexpr double kManyBad = 0.1;
constexpr double kCoreForInput = 0.6;

std::string rate_text(double rate, const std::string& unit) {
  return fmt::format("{} {}/s", grouped_digits(std::llround(rate)), unit);
}

class SlowInput {
 public:
  SlowInput(const RunFacts& facts, const TaskReport& worker)
      : facts_(facts),
        worker_(worker),
        share_(RunFacts::share(worker, "input")),
        makes_(worker.input ? worker.input->capacity() : 0),
        takes_(worker.examples_per_s.value_or(0) / std::max(0.01, 1 - share_)) {}

  Finding finding() const {
    Finding found{.task = worker_.task, .advice = {}, .gain = gain(share_)};
    if (!worker_.input || worker_.input->slowest() == nullptr) return without_numbers(found);
    const InputReport& input = *worker_.input;
    if (input.waited < 0.5 * share_ * input.seconds) return copies(found);
    if (double(input.bad) > kManyBad * double(input.bad + input.records)) return bad(found);
    if (makes_ > kAmple * takes_) return cores(found);
    return input.slowest()->name == "read" ? disk(found) : stage(found);
  }

 private:
  // An input that is as slow for the others is slow for all tasks.
  double gain(double saved) const {
    double least = share_;
    for (const TaskReport* const each : facts_.workers()) {
      least = std::min(least, RunFacts::share(*each, "input"));
    }
    constexpr double kAlike = 0.6;
    const double all = least >= kAlike * share_ ? saved * least / share_ : 0;
    return std::max(facts_.gain_without(worker_, saved), RunFacts::gain_without(all));
  }

  std::string threads() const { return counted(worker_.input->most_threads, "thread"); }
  std::string limit(const std::string& at) const {
    return fmt::format(
        "The input of {} is the limit, at {}: with {} it could make {}, and the rest of the step "
        "could take {}.",
        worker_.task, at, threads(), rate_text(makes_, worker_.unit),
        rate_text(takes_, worker_.unit));
  }

  Finding without_numbers(Finding found) const {
    found.cause = Cause::kInputStage;
    found.sentence =
        fmt::format("Making batches takes {:.0f}% of the time of {}.", 100 * share_, worker_.task);
    found.advice = "With batches that are made ahead, on other threads";
    return found;
  }
  Finding copies(Finding found) const {
    found.cause = Cause::kInputCopy;
    found.sentence = fmt::format(
        "Batches of {} were ready when they were wanted; {:.0f}% of the time went to copying them "
        "to where the step reads them.",
        worker_.task, 100 * share_);
    return found;
  }
  Finding bad(Finding found) const {
    const InputReport& input = *worker_.input;
    found.cause = Cause::kBadRecords;
    found.sentence = limit(input.slowest()->name) +
                     fmt::format(" {:.0f}% of the records were bad, and left out.",
                                 100 * double(input.bad) / double(input.bad + input.records));
    found.advice = "With whole records";
    return found;
  }
  Finding cores(Finding found) const {
    found.cause = Cause::kInputCores;
    found.sentence = fmt::format(
        "{} waited {:.0f}% of the time for batches, though with {} the input could make {}, and "
        "the rest of the step could take {}: its threads lacked cores.",
        worker_.task, 100 * share_, threads(), rate_text(makes_, worker_.unit),
        rate_text(takes_, worker_.unit));
    found.advice = "With free cores, or fewer --threads for the kernels";
    return found;
  }
  Finding disk(Finding found) const {
    found.cause = Cause::kDisk;
    found.sentence = limit("read");
    found.advice = "With files on a faster disk, or in memory (the stage cache)";
    return found;
  }
  // More threads make more, as far as there are cores for them.
  Finding stage(Finding found) const {
    const int most = worker_.input->most_threads;
    const double free = facts_.cores() - worker_.use.pressure.machine_cores.value_or(0);
    found.cause = Cause::kInputStage;
    found.sentence = limit(worker_.input->slowest()->name);
    found.advice = "With a faster stage, or its results kept in memory (the stage cache)";
    if (free < kCoreForInput || most >= facts_.cores()) return found;
    const double ratio = std::min(takes_, makes_ * facts_.cores() / std::max(1, most)) /
                         std::max(1.0, worker_.examples_per_s.value_or(1));
    found.advice = fmt::format("--input-threads {}", facts_.cores());
    if (ratio > 1) found.gain = gain(1 - 1 / ratio);
    return found;
  }

  const RunFacts& facts_;
  const TaskReport& worker_;
  const double share_, makes_, takes_;
};

}  // namespace

std::vector<Finding> slow_input(const RunFacts& facts) {
  std::vector<Finding> found;
  for (const TaskReport* const worker : facts.workers()) {
    if (RunFacts::share(*worker, "input") < kLeastInput) continue;
    found.push_back(SlowInput(facts, *worker).finding());
  }
  return found;
}

}  // namespace paceline
