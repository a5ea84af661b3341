// The speed at which update rules pass over memory, in arrays that no cache holds.
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

  /// The rule may have two slots at most.
  void apply(const Rule& rule);
  /// The bytes that a pass of the rule moves, read and written ones counted each.
  double bytes(const Rule& rule) const;
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
