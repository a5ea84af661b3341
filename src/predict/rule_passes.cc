#include "predict/rule_passes.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "kernels/rule_kernel.h"
#include "predict/memory_passes.h"
#include "predict/step_cost.h"

namespace paceline {
namespace {

constexpr std::size_t kArrays = 4;  // the values, two slots, the gradient
constexpr std::int64_t kGrain = 1 << 16;
// Arrays at a distance of a power of two would share cache sets and memory banks.
constexpr std::size_t kApart = 5 * 4096 / sizeof(float);

std::size_t array_slots(const Rule& rule) {
  return std::size_t(std::ranges::count(rule.slots(), false, &SlotSpec::scalar));
}

}  // namespace

RulePasses::RulePasses(int threads)
    : pool_(std::make_unique<ThreadPool>(threads)),
      elements_(uncached_bytes() / 2 / sizeof(float)),
      stride_(elements_ + kApart),
      memory_(kArrays * stride_ * sizeof(float)) {
  const auto all = std::int64_t(kArrays * stride_);
  pool_->parallel_for(all, kGrain, [&](std::int64_t begin, std::int64_t end) {
    std::fill(array(0) + begin, array(0) + end, 0.01f);
  });
}

float* RulePasses::array(std::size_t number) const {
  return reinterpret_cast<float*>(memory_.data()) + number * stride_;
}

void RulePasses::apply(const Rule& rule, std::size_t elements) {
  pool_->parallel_for(std::int64_t(elements), kGrain, [&](std::int64_t begin, std::int64_t end) {
    const std::array<float*, 2> slots = {array(1) + begin, array(2) + begin};
    const auto size = std::size_t(end - begin);
    apply_rule(rule, {.learning_rate = 1e-4f},
               {{array(0) + begin, size},
                std::span(slots).first(array_slots(rule)),
                {array(3) + begin, size}});
  });
}

double RulePasses::bytes(const Rule& rule, std::size_t elements) {
  return double(elements) * rule_bytes_per_element(rule);
}

}  // namespace paceline
