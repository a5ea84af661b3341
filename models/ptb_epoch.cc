#include "models/ptb_epoch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace paceline::models {

void PtbEpoch::begin_at(std::int64_t step, double cost) {
  fed_ = made_ = std::min(step, steps_);
  while (next_line_ < made_) next_line_ += tenth();
  if (std::isnan(cost) || made_ == 0) return;
  perplexity_.add(cost, made_ * unroll_);
  timed_from_ = perplexity_.time_steps();
}

void PtbEpoch::add_step(Session& session, double cost) {
  perplexity_.add(cost, unroll_);
  // The program of Zaremba et al. prints at steps 10, 10 + a tenth, …, counted from 0.
  const std::int64_t made = made_++;
  const std::int64_t step = shared_.value_or(made);
  if (step < next_line_) return;
  while (next_line_ <= step) next_line_ += tenth();
  session.print(line(step));
}

std::string PtbEpoch::line(std::int64_t step) const {
  const double words = double((perplexity_.time_steps() - timed_from_) * batch_);
  return fmt::format("{:.3f} perplexity: {:.1f} speed: {:.0f} wps", double(step) / double(steps_),
                     perplexity_.value(), words / seconds());
}

}  // namespace paceline::models
