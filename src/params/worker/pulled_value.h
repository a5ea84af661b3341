// A variable's value as a worker has it from its ps, and the memory that receives the next one.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "exec/parameter_store.h"

namespace paceline {

/// One step thread holds, asks and takes; threads of the link, one at a time, fill.
class PulledValue {
 public:
  /// The spec must outlive it.
  explicit PulledValue(const VariableSpec& spec) : spec_(spec) {}

  /// Makes the memory, once.
  void allocate();
  bool held() const { return held_; }
  /// The value that kernels read. It is undefined until allocate().
  const Tensor& value() const { return memories_[std::size_t(front_)]; }

  /// Makes a newer value arrive in memory of its own, so that kernels can read this one meanwhile.
  void ask_next();
  /// Says that the next value is not wanted any more. It may arrive all the same.
  void forget_next() { next_ = Next::kUnasked; }
  bool next_asked() const { return next_ == Next::kAsked; }
  bool next_came() const { return next_ == Next::kCame; }
  /// Makes kernels read the value that has arrived, from now on.
  void take_next();

  /// Returns the memory for the next value, all of which arrives in one frame; empty when none was
  /// asked for.
  std::span<std::byte> place_of_next() const;
  /// Says that the next value has arrived. No other is taken until it is asked for.
  void next_arrived();

 private:
  enum class Next : std::uint8_t { kUnasked, kAsked, kCame };

  const VariableSpec& spec_;
  std::array<Tensor, 2> memories_;
  std::atomic<int> front_{0};
  std::atomic<bool> held_{false};
  std::atomic<Next> next_{Next::kUnasked};
};

}  // namespace paceline
