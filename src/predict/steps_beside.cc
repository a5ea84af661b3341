#include "predict/steps_beside.h"

#include <fmt/format.h>

#include "base/printed.h"

namespace paceline {

void StepsBeside::add(std::span<const StepPace> paces) {
  Measured& made = measured_[int(paces.size())];
  made = {};
  for (const StepPace& pace : paces) {
    made.seconds += pace.seconds / double(paces.size());
    made.busy_cores += pace.busy_cores / double(paces.size());
    if (pace.seconds > 0) made.steps_per_s += 1 / pace.seconds;
  }
}

int StepsBeside::most() const { return measured_.empty() ? 1 : measured_.rbegin()->first; }

// Returns a part of the measurements at this number of workers. One worker has the part `alone`.
double StepsBeside::between(double workers, double alone, double Measured::*part) const {
  double before = 1, there = alone;
  for (const auto& [copies, made] : measured_) {
    if (workers < copies) {
      const double way = (workers - before) / (copies - before);
      return workers <= before ? there : there + way * (made.*part - there);
    }
    before = copies;
    there = made.*part;
  }
  return there;
}

double StepsBeside::slowdown(double workers) const {
  return measured_.empty() ? 1 : between(workers, alone_s_, &Measured::seconds) / alone_s_;
}

double StepsBeside::busy_cores(double workers) const {
  return between(workers, measured_.begin()->second.busy_cores, &Measured::busy_cores);
}

std::string StepsBeside::text() const {
  std::string text;
  for (const auto& [copies, made] : measured_) {
    text += fmt::format("{} copies at once: {} steps/s together, {} alone\n", copies,
                        rounded(made.steps_per_s, 3), rounded(1 / alone_s_, 3));
  }
  return text;
}

}  // namespace paceline
