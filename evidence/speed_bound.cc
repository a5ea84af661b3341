#include "evidence/speed_bound.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace paceline {
namespace {

std::vector<BoundTerm> terms_of(const std::vector<SharedResource>& resources) {
  std::vector<BoundTerm> terms;
  for (const SharedResource& each : resources) {
    const double used = std::accumulate(each.per_step.begin(), each.per_step.end(), 0.0);
    if (used == 0) continue;
    const double rate = each.capacity / used;
    const auto known = std::ranges::find(terms, each.name, &BoundTerm::what);
    if (known == terms.end()) {
      terms.push_back({each.name, rate});
    } else {
      known->steps_per_s = std::min(known->steps_per_s, rate);
    }
  }
  return terms;
}

}  // namespace

int JobHosts::hosts() const {
  int last = 0;
  for (const int host : ps) last = std::max(last, host);
  for (const int host : workers) last = std::max(last, host);
  return last + 1;
}

// Raises the rates of all workers together until a resource is used up. Workers that use it then
// keep their rate, and the others go on.
SpeedBound share_fairly(const std::vector<SharedResource>& resources, std::size_t workers) {
  SpeedBound bound{0, std::vector<double>(workers), "", terms_of(resources)};
  std::vector<bool> held(workers);
  while (std::ranges::count(held, false) > 0) {
    double least = std::numeric_limits<double>::infinity();
    const SharedResource* tightest = nullptr;
    for (const SharedResource& each : resources) {
      double used = 0, wanted = 0;
      for (std::size_t w = 0; w < workers; ++w) {
        (held[w] ? used : wanted) += each.per_step[w] * (held[w] ? bound.workers[w] : 1);
      }
      if (wanted == 0 || (each.capacity - used) / wanted >= least) continue;
      least = (each.capacity - used) / wanted;
      tightest = &each;
    }
    if (tightest == nullptr) break;
    if (bound.limit.empty()) bound.limit = tightest->name;
    for (std::size_t w = 0; w < workers; ++w) {
      if (held[w] || tightest->per_step[w] == 0) continue;
      bound.workers[w] = least;
      held[w] = true;
    }
  }
  for (const double rate : bound.workers) bound.steps_per_s += rate;
  return bound;
}

}  // namespace paceline
