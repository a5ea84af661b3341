#include "evidence/own_pace.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace paceline {
namespace {

// If a variable's path takes hardly longer than a step, it is not named as the limit.
constexpr double kNoticeable = 1.01;

}  // namespace

SharedResource pace_of(std::string name, double seconds, std::size_t worker, std::size_t workers) {
  SharedResource one{std::move(name), 1, std::vector<double>(workers)};
  one.per_step[worker] = seconds;
  return one;
}

std::vector<SharedResource> own_pace(const StepSchedule& schedule,
                                     std::span<const VariableSpec> specs,
                                     std::span<const double> return_s, std::size_t worker,
                                     std::size_t workers) {
  double longest = 0;
  std::size_t slowest = 0;
  for (std::size_t v = 0; v < specs.size(); ++v) {
    if (return_s[v] == 0) continue;
    const VariableMoments& moments = schedule.variables[v];
    const double way = moments.ready - moments.needed + return_s[v];
    if (way <= longest) continue;
    longest = way;
    slowest = v;
  }
  const auto pace = [&](std::string name, double seconds) {
    return pace_of(std::move(name), seconds, worker, workers);
  };
  if (longest <= kNoticeable * schedule.seconds) {
    return {pace("the device", std::max(longest, schedule.seconds))};
  }
  return {pace("the device", schedule.seconds),
          pace(fmt::format("the way of {} from ready to needed", specs[slowest].name), longest)};
}

}  // namespace paceline
