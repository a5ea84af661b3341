// The speed at which update rules pass over memory, and over what the caches hold.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/buffer.h"
#include "base/thread_pool.h"
#include "paceline/rule.h"

namespace paceline {

/// Updates of one variable by the kernels that a parameter server runs, split over a pool's
/// threads. Owns the variable, two slots and a gradient.
class RulePasses {
 public:
  explicit RulePasses(int threads);
  /// From now on, this many threads make the passes.
  void use_threads(int threads) { pool_ = std::make_unique<ThreadPool>(threads); }

  /// Applies the rule to all elements. The rule may have at most two slots.
  void apply(const Rule& rule) { apply(rule, elements_); }
  /// Applies the rule to the first `elements` elements.
  void apply(const Rule& rule, std::size_t elements);
  /// The bytes that a pass over all elements moves; read bytes and written bytes both count.
  double bytes(const Rule& rule) const { return bytes(rule, elements_); }
  static double bytes(const Rule& rule, std::size_t elements);
  /// At this many elements, the caches hold all arrays.
  static constexpr std::size_t kCached = std::size_t(1) << 18;
  /// The memory of all arrays. The next pass reads what is written there.
  std::span<std::byte> memory() const { return memory_.span(); }
  /// The number of the variable's elements.
  std::size_t elements() const { return elements_; }
  /// The rule whose passes represent those of all rules: it reads four arrays and writes three.
  static Rule usual() { return Adam{}; }

 private:
  float* array(std::size_t number) const;

  std::unique_ptr<ThreadPool> pool_;
  const std::size_t elements_, stride_;  // of an array
  Buffer memory_;
};

}  // namespace paceline
