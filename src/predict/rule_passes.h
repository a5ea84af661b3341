// The speed at which update rules pass over memory, and over what the caches hold.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/buffer.h"
#include "base/thread_pool.h"
#include "paceline/rule.h"

namespace paceline {

/// Updates of one variable by the kernels that a parameter server runs, split over the threads of a
/// pool. Owns the variable, two slots and a gradient.
class RulePasses {
 public:
  explicit RulePasses(int threads);
  /// Passes are made by so many threads from now on.
  void use_threads(int threads) { pool_ = std::make_unique<ThreadPool>(threads); }

  /// Over all elements. The rule may have two slots at most.
  void apply(const Rule& rule) { apply(rule, elements_); }
  /// Over the first of them.
  void apply(const Rule& rule, std::size_t elements);
  /// The bytes that a pass over all elements moves, read and written ones counted each.
  double bytes(const Rule& rule) const { return bytes(rule, elements_); }
  static double bytes(const Rule& rule, std::size_t elements);
  /// Of so many elements the caches hold all arrays.
  static constexpr std::size_t kCached = std::size_t(1) << 18;
  /// All arrays. What is written there is what the next pass reads.
  std::span<std::byte> memory() const { return memory_.span(); }
  /// The elements of the variable.
  std::size_t elements() const { return elements_; }
  /// The rule whose passes stand for those of all rules: it reads four arrays and writes three.
  static Rule usual() { return Adam{}; }

 private:
  float* array(std::size_t number) const;

  std::unique_ptr<ThreadPool> pool_;
  const std::size_t elements_, stride_;  // of an array
  Buffer memory_;
};

}  // namespace paceline
