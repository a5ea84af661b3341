#include "params/shard/not_finite.h"

#include <fmt/format.h>

#include "base/printed.h"
#include "kernels/finite.h"

namespace paceline {

NotFinite::NotFinite(const std::string& variable, const std::string& what)
    : Error(ErrorCode::kFailedPrecondition,
            fmt::format("[variable {}] {} of a contribution", variable, what)),
      variable_(variable),
      what_(what) {}

Error NotFinite::of(const std::string& task, std::int64_t step) const {
  return {code(), fmt::format("{} contributed NaN or infinity to {} in its step {}: {} "
                              "(--on-nan skip leaves such contributions out)",
                              task, variable_, step, what_)};
}

void check_finite(const std::string& variable, std::int64_t first, std::span<const float> values) {
  const std::size_t bad = first_not_finite(values);
  if (bad == values.size()) return;
  throw NotFinite(variable,
                  fmt::format("element {} is {}", first + std::int64_t(bad), printed(values[bad])));
}

void check_rows_finite(const std::string& variable, std::span<const std::int32_t> rows,
                       std::int64_t row_elements, const float* values) {
  for (const std::int32_t row : rows) {
    check_finite(variable, row * row_elements, {values, std::size_t(row_elements)});
    values += row_elements;
  }
}

}  // namespace paceline
