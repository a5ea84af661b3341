#include <algorithm>

#include "paceline/data.h"

namespace paceline {

const StageReport* InputReport::slowest() const {
  const auto slowest = std::ranges::max_element(stages, {}, &StageReport::seconds);
  return slowest != stages.end() && slowest->seconds > 0 ? &*slowest : nullptr;
}

double InputReport::capacity() const {
  double busy = 0;
  for (const StageReport& stage : stages) busy += stage.seconds;
  // Every record passes the stage before the last. The last stage only holds finished batches.
  const std::int64_t made = stages.size() < 2 ? 0 : stages[stages.size() - 2].records;
  return busy > 0 ? double(made) * most_threads / busy : 0;
}

}  // namespace paceline
