#include "predict/forecast_progress.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>

#include "base/print_text.h"

namespace paceline {

void ForecastProgress::operator()(const Way& way) {
  constexpr Duration kEvery = std::chrono::seconds(1);
  ++begun_;
  if (clock_.now() - told_ < kEvery) return;
  told_ = clock_.now();
  print_text(stderr, fmt::format("{} of {} ways: {}\n", begun_, all_, way.text()));
}

}  // namespace paceline
