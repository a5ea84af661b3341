// A member of a group that reduces the same float32 numbers repeatedly, with any engine.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "params/collective/collectives.h"

namespace paceline::bench {

/// A member of a group. It is its engine's only user, and the engine's listener. The numbers are
/// one variable. One thread makes the calls; the engine may call its listener on any thread.
class Reducer : public ReductionListener {
 public:
  Reducer(int rank, int members, bool in_place, std::size_t bytes);

  std::span<const VariableSpec> variables() const { return variables_; }
  const ContributionLayout& layout() const { return layout_; }
  /// Writes this member's contribution into the engine's memory, where it stays.
  void fill(Collectives& engine) const;
  /// Reduces once. `meet` waits until every member has called it, and `wait` until its argument
  /// returns true. Returns the seconds from the moment at which all members have opened the attempt
  /// until this member has all sums. Throws the engine's error.
  double reduce(Collectives& engine, const std::function<void()>& meet,
                const std::function<void(const std::function<bool()>&)>& wait);
  /// Throws kInternal unless the last sums are the mean of all contributions.
  void check_sums(const Collectives& engine) const;
  /// Sets a function that is called each time after the engine has called its listener.
  void set_wake(std::function<void()> wake) { wake_ = std::move(wake); }

  void reduced(std::uint64_t tag) override;
  void rested() override {}
  void failed(const Error& error) override;

 private:
  const std::vector<VariableSpec> variables_;
  const ContributionLayout layout_;
  const std::shared_ptr<const std::vector<Bucket>> buckets_;
  ReductionGroup group_;
  std::function<void()> wake_ = [] {};
  std::atomic<std::uint64_t> reduced_{0};
  std::atomic<bool> failed_{false};
  std::optional<Error> error_;
};

}  // namespace paceline::bench
