// A member of a group that reduces the same float32 numbers again and again, with any engine.
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

/// The engine gets this as its listener and is used by this alone. The numbers are one variable.
/// One thread makes the calls; the engine may tell its listener on any.
class Reducer : public ReductionListener {
 public:
  Reducer(int rank, int members, bool in_place, std::size_t bytes);

  std::span<const VariableSpec> variables() const { return variables_; }
  const ContributionLayout& layout() const { return layout_; }
  /// Writes this member's contribution into the engine's memory, where it stays.
  void fill(Collectives& engine) const;
  /// Reduces once. `meet` waits until every member has called it, `wait` until its argument holds.
  /// Returns the seconds from the moment that all members have opened the attempt until this one
  /// has all sums. Throws what the engine fails with.
  double reduce(Collectives& engine, const std::function<void()>& meet,
                const std::function<void(const std::function<bool()>&)>& wait);
  /// Throws kInternal unless the last sums are the mean of all contributions.
  void check_sums(const Collectives& engine) const;
  /// Is called whenever the engine has told something.
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
