#include "cluster/report/bound_in_words.h"

#include <fmt/format.h>

#include "base/printed.h"

namespace paceline {

std::string bound_in_words(const Report& run) {
  const auto bound = [&](const char* key) { return run.value("bound", key); };
  const std::optional<double> allowed = bound("steps_per_s"), made = run.steps_per_s();
  const std::optional<double> products = bound("gflops_per_s"), memory = bound("gbytes_per_s");
  if (!allowed || !made || !products || !memory || *allowed <= 0) return "";
  const double reached = *made / *allowed;
  constexpr double kWithinNoise = 1.02;
  return fmt::format(
      "At this machine's roof, {:.0f} GFLOP/s and {:.1f} GB/s, kernels and rules would allow "
      "{} steps/s{}: the run made {:.2f} of that{}.",
      *products, *memory, rounded(*allowed), run.tasks.size() > 1 ? " in total" : "", reached,
      reached > kWithinNoise ? ", so other processes were running when the roof was measured" : "");
}

}  // namespace paceline
