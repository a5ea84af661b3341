#include "predict/growing_table.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include "base/print_text.h"
#include "base/real_clock.h"
#include "paceline/error.h"
#include "predict/prediction_text.h"

namespace paceline {

std::function<bool()> gives_up_after(double seconds) {
  return [seconds, begun = kRealClock.now()] {
    return std::chrono::duration<double>(kRealClock.now() - begun).count() >= seconds;
  };
}

std::vector<Prediction> print_predictions(PredictedJob job, const std::vector<JobShape>& shapes,
                                          double limit_s) {
  job.gives_up = gives_up_after(limit_s);
  const std::size_t width = width_of(shapes);
  print_text(stdout, prediction_head(width));
  Predictions all = predict_all(job, shapes, [&](const Prediction& made) {
    print_text(stdout, prediction_row(made, width));
  });
  if (all.made.empty()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--time-limit {}: no way was predicted by then: give it more seconds",
                            limit_s));
  }
  if (!all.untried.empty()) print_text(stdout, untried_text(all.untried, limit_s));
  return std::move(all.made);
}

}  // namespace paceline
