// One worker's pass over its part of the text, or over what it gets of a text that is shared out,
// which prints its progress ten times.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "models/perplexity.h"
#include "paceline/session.h"

namespace paceline::models {

class PtbEpoch {
 public:
  /// A step reads `batch` rows of `unroll` words. The steps are those of all workers where they
  /// share the text.
  PtbEpoch(std::int64_t steps, std::int64_t batch, std::int64_t unroll)
      : steps_(steps),
        batch_(batch),
        unroll_(unroll),
        begun_(Clock::now()),
        next_line_(std::min<std::int64_t>(10, tenth() - 1)) {}

  /// Begins after the first steps of the epoch, whose costs summed to `cost`. If `cost` is NaN, it
  /// is not known, and the perplexity is that of the steps from now on.
  void begin_at(std::int64_t step, double cost);
  std::int64_t steps_made() const { return made_; }
  double cost() const { return perplexity_.cost(); }
  /// True when the perplexity covers all steps of the epoch so far.
  bool knows_all() const { return perplexity_.time_steps() == made_ * unroll_; }

  /// The next batch, or none at the end.
  bool at_end() const { return fed_ == steps_; }
  std::int64_t next_batch() { return fed_++; }
  /// The next batch is this one of a text that is shared out.
  void feed_shared(std::int64_t batch) {
    shared_ = batch;
    ++fed_;
  }
  /// The batches that were fed.
  std::int64_t fed() const { return fed_; }
  /// The job has no more batches of this epoch for this worker.
  void end_shared() { ended_ = true; }
  /// The last batch of a text that is shared out, from 0.
  std::int64_t shared_batch() const { return shared_.value_or(0); }
  /// True when every step of the epoch was made, of those that are this worker's.
  bool whole() const { return ended_ || made_ == steps_; }

  /// Adds a step; prints `0.104 perplexity: 853.3 speed: 11000 wps` when it is time.
  void add_step(Session& session, double cost);
  double perplexity() const { return perplexity_.value(); }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begun_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  std::string line(std::int64_t step) const;
  std::int64_t tenth() const { return std::max<std::int64_t>(steps_ / 10, 1); }

  std::int64_t steps_, batch_, unroll_;
  Clock::time_point begun_;
  std::int64_t fed_ = 0, made_ = 0;
  std::optional<std::int64_t> shared_;
  bool ended_ = false;
  std::int64_t next_line_;
  std::int64_t timed_from_ = 0;  // time steps
  Perplexity perplexity_;
};

}  // namespace paceline::models
