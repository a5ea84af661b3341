#include "evidence/round_seconds.h"

#include <algorithm>
#include <numeric>

namespace paceline {
namespace {

/// A moment of the step, and the time that a part of the round has used until then.
struct Reached {
  double moment = 0;
  double last = 0, first = 0;
};

// Returns how long the busiest resource serves the first n variables of the order, for each n.
std::vector<double> served(const SecondsByResource& resources,
                           const std::vector<std::size_t>& order) {
  std::vector<double> busiest(order.size());
  for (const std::vector<double>& seconds : resources) {
    double sum = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      sum += seconds[order[i]];
      busiest[i] = std::max(busiest[i], sum);
    }
  }
  return busiest;
}

std::vector<Reached> reached(const RoundPart& part, const std::vector<double>& moments,
                             const std::vector<std::size_t>& order, double nothing_at) {
  const std::vector<double> last = served(part.last, order), first = served(part.first, order);
  std::vector<Reached> all = {{nothing_at}};
  for (std::size_t i = 0; i < order.size(); ++i) {
    all.push_back({moments[order[i]], last[i], first[i]});
  }
  return all;
}

}  // namespace

double round_seconds(const StepSchedule& schedule, const RoundPart& values,
                     const RoundPart& contributions) {
  std::vector<double> needed, ready;
  for (const VariableMoments& moments : schedule.variables) {
    needed.push_back(moments.needed);
    ready.push_back(moments.ready);
  }
  std::vector<std::size_t> order(schedule.variables.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t v) { return needed[v]; });
  const std::vector<Reached> arrivals = reached(values, needed, order, 0);
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t v) { return ready[v]; });
  const std::vector<Reached> gifts = reached(contributions, ready, order, schedule.seconds);
  double longest = 0;
  for (const Reached& value : arrivals) {
    for (const Reached& gift : gifts) {
      const double kernels = gift.moment - value.moment;
      if (kernels < 0) continue;
      longest =
          std::max({longest, value.last + kernels + gift.first, value.first + kernels + gift.last});
    }
  }
  return longest;
}

}  // namespace paceline
