// Finds checkpoints that are written slowly. Writing does not slow training down, but the next
// checkpoint is late, or the end of the run waits.
#include <fmt/format.h>

#include <algorithm>

#include "base/printed.h"
#include "explain/causes.h"

namespace paceline {
namespace {

constexpr double kLeastLate = 1, kLeastWaited = 2;  // seconds
// Fractions of the time in which the run made steps.
constexpr double kShareLate = 0.1, kShareWaited = 0.2;
constexpr const char* kFasterDisk = "With --out on a faster disk, or a larger --save-every";

}  // namespace

std::vector<Finding> slow_checkpoints(const RunFacts& facts) {
  const auto value = [&](const char* key) {
    return facts.run().value("checkpoints", key).value_or(0);
  };
  // A task that stands still cannot write, so the time of stops is not blamed on the disk.
  const double late = value("late_s") - facts.stood_still();
  const double waited = value("waited_s") - facts.stood_still();
  const bool is_late = late > std::max(kLeastLate, kShareLate * facts.seconds());
  const bool is_awaited = waited > std::max(kLeastWaited, kShareWaited * facts.seconds());
  if (!is_late && !is_awaited) return {};
  const std::string took =
      fmt::format("Each checkpoint takes {} s to write, at {} MB/s", rounded(value("seconds_each")),
                  rounded(1e-6 * value("bytes_per_s")));
  return {{.cause = Limit::kCheckpoints,
           .sentence = is_late ? fmt::format("{}: the next one was wanted {:.1f} s before it could "
                                             "be begun.",
                                             took, late)
                               : fmt::format("{}: the run waited {:.1f} s for them.", took, waited),
           .advice = kFasterDisk}};
}

}  // namespace paceline
