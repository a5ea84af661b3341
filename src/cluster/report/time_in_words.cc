#include "cluster/report/time_in_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/printed.h"
#include "trace/step_account.h"

namespace paceline {
namespace {

constexpr double kNearlyAll = 0.95;

constexpr std::pair<Activity, std::string_view> kWords[] = {
    {Activity::kInput, "making batches"},
    {Activity::kCompute, "kernels"},
    {Activity::kPull, "waiting for values from the ps"},
    {Activity::kPush, "handing contributions over"},
    {Activity::kApply, "rules, which update the variables"},
    {Activity::kWait, "waiting for other workers"},
    {Activity::kOther, "work outside the step"}};

std::string_view words_of(std::string_view activity) {
  const auto found = std::ranges::find_if(
      kWords, [&](const auto& words) { return name_of(words.first) == activity; });
  return found == std::end(kWords) ? activity : found->second;
}

}  // namespace

std::string time_in_words(const TaskReport& worker) {
  if (!worker.steps_per_s || worker.share.empty()) return "";
  const auto& [activity, share] =
      *std::ranges::max_element(worker.share, {}, [](const auto& each) { return each.second; });
  std::string text =
      fmt::format("{} of the time ({:.0f}%) went to {}", share > 0.5 ? "Most" : "The largest part",
                  100 * share, words_of(activity));
  double work = 0;
  for (const auto& [name, part] : worker.share) {
    if (name == name_of(Activity::kCompute) || name == name_of(Activity::kApply)) work += part;
  }
  if (work <= 0 || work > kNearlyAll) return text + ".";
  return text + fmt::format("; kernels and rules alone would allow {} steps/s.",
                            rounded(*worker.steps_per_s / work));
}

}  // namespace paceline
