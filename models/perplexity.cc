#include "models/perplexity.h"

#include <cmath>

namespace paceline::models {
namespace {

std::optional<double> value_of(const Perplexity& perplexity) {
  if (perplexity.time_steps() == 0) return std::nullopt;
  return perplexity.value();
}

}  // namespace

double Perplexity::value() const {
  return time_steps_ > 0 ? std::exp(cost_ / double(time_steps_)) : std::nan("");
}

void PerplexityEnds::add(double cost, std::int64_t time_steps) {
  if (added_ < kSteps) first_.add(cost, time_steps);
  last_[added_++ % kSteps] = {cost, time_steps};
}

std::optional<double> PerplexityEnds::first() const { return value_of(first_); }

std::optional<double> PerplexityEnds::last() const {
  Perplexity last;
  for (const Step& step : last_) last.add(step.cost, step.time_steps);
  return value_of(last);
}

}  // namespace paceline::models
