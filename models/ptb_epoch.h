// One worker's pass over its part of the text, which prints its progress ten times.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "models/perplexity.h"
#include "paceline/session.h"

namespace paceline::models {

class PtbEpoch {
 public:
  /// A step reads `batch` rows of `unroll` words.
  PtbEpoch(std::int64_t steps, std::int64_t batch, std::int64_t unroll)
      : steps_(steps), batch_(batch), unroll_(unroll), begun_(Clock::now()) {}

  /// Begins after the first steps of the epoch, whose costs summed to `cost`. If `cost` is NaN, it
  /// is not known, and the perplexity is that of the steps from now on.
  void begin_at(std::int64_t step, double cost);
  std::int64_t steps_made() const { return made_; }
  double cost() const { return perplexity_.cost(); }
  /// True when the perplexity covers all steps of the epoch so far.
  bool knows_all() const { return perplexity_.time_steps() == made_ * unroll_; }

  /// The next batch, or none at the end.
  bool at_end() const { return fed_ == steps_; }
  /// True when every step of the epoch was made.
  bool whole() const { return made_ == steps_; }
  std::int64_t next_batch() { return fed_++; }

  /// Adds a step; prints `0.104 perplexity: 853.3 speed: 11000 wps` when it is time.
  void add_step(Session& session, double cost);
  double perplexity() const { return perplexity_.value(); }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begun_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  std::string line(std::int64_t step) const;

  std::int64_t steps_, batch_, unroll_;
  Clock::time_point begun_;
  std::int64_t fed_ = 0, made_ = 0;
  std::int64_t timed_from_ = 0;  // time steps
  Perplexity perplexity_;
};

}  // namespace paceline::models
