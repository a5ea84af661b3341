#include "cluster/report/input_in_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/grouped_digits.h"
#include "base/printed.h"
#include "trace/step_account.h"

namespace paceline {
namespace {

constexpr double kWaitingShare = 0.05;
constexpr double kAmple = 1.25;  // times what the step takes: the stages are not what limits it

std::string rate_text(double rate, const std::string& unit) {
  return fmt::format("{} {}/s", grouped_digits(std::llround(rate)), unit);
}

// True when most of the time that went to the input was no waiting.
bool were_ready(const InputReport& input, double share) {
  return input.waited < 0.5 * share * input.seconds;
}

std::string limit_in_words(const TaskReport& worker) {
  const auto share = std::ranges::find(worker.share, name_of(Activity::kInput),
                                       &std::pair<std::string, double>::first);
  const StageReport* const slowest = worker.input->slowest();
  if (share == worker.share.end() || share->second < kWaitingShare || share->second >= 1 ||
      !worker.examples_per_s || slowest == nullptr) {
    return "";
  }
  if (were_ready(*worker.input, share->second)) {
    return fmt::format(
        "Batches were ready when they were wanted; {:.0f}% of the time went to copying them to "
        "where the step reads them.",
        100 * share->second);
  }
  const double makes = worker.input->capacity();
  const double takes = *worker.examples_per_s / (1 - share->second);
  const std::string threads = counted(worker.input->most_threads, "thread");
  if (makes > kAmple * takes) {
    return fmt::format(
        "Batches were waited for in {:.0f}% of the time, though with {} the input could make {}, "
        "and the rest of the step could take {}: its threads lacked cores.",
        100 * share->second, threads, rate_text(makes, worker.unit), rate_text(takes, worker.unit));
  }
  return fmt::format(
      "The input is the limit, at {}: with {} it could make {}, and the rest of the step could "
      "take {}.",
      slowest->name, threads, rate_text(makes, worker.unit), rate_text(takes, worker.unit));
}

}  // namespace

std::string input_in_words(const TaskReport& worker) {
  if (!worker.input) return "";
  std::string text = limit_in_words(worker);
  if (worker.input->bad == 0) return text;
  if (!text.empty()) text += ' ';
  return text + fmt::format("{} left out of the input.",
                            worker.input->bad == 1
                                ? "1 bad record was"
                                : grouped_digits(worker.input->bad) + " bad records were");
}

}  // namespace paceline
