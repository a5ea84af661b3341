// An aggregation decides about contributions on a ps: whether each is applied at once, kept for a
// round or dropped, when it is answered, and which worker may begin which step. Plain state
// machines: they have no thread, socket or clock.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "paceline/strategy.h"

namespace paceline {

enum class AggregationKind : std::uint8_t {
  kAsync,  // every contribution is applied when it arrives
  /// As kAsync, but no worker begins a step that is more than `staleness` own steps ahead of the
  /// slowest worker's.
  kBounded,
  kRounds,  // each round applies the mean of one contribution from each worker
};
/// All kinds, in the order of their codes on the wire.
inline constexpr std::array kAggregationKinds = {AggregationKind::kAsync, AggregationKind::kBounded,
                                                 AggregationKind::kRounds};

inline constexpr std::array kLateContributions = {LateContribution::kDrop, LateContribution::kFold};

/// How the workers of a job train together. The chief declares the spec to every ps.
struct AggregationSpec {
  AggregationKind kind = AggregationKind::kAsync;
  std::int64_t staleness = 0;  // kBounded: own steps
  // kRounds:
  std::int32_t replicas = 0;  // this many contributions close a round; 0: those of all workers
  LateContribution late = LateContribution::kDrop;
  std::int32_t num_ps = 1;
  std::string coordinator = {};  // the address of ps 0, to which the other ps tasks connect
  /// The workers commit rounds among themselves, and tell ps 0 afterwards which contributions each
  /// round has. ps 0 then closes no round by itself.
  bool workers_commit = false;
  bool operator==(const AggregationSpec&) const = default;
  /// True when a worker always waits between its contribution and its next step, so that other
  /// workers contribute in between. The values that the answer to the contribution brings would
  /// then be too old for the next step.
  bool outdates_answers() const { return kind == AggregationKind::kBounded && staleness == 0; }
  /// "async", "ssp with staleness 3", "sync with 2 replicas to aggregate", "hybrid".
  std::string str() const;
};

/// What becomes of a contribution.
enum class Fate : std::uint8_t {
  kApply,  // applied as it arrives
  kKeep,   // kept until its round is closed
  kDrop,   // it was applied before, or is too late
};

/// The worker may begin its own steps up to `own_step`.
struct StepLimit {
  int worker = 0;
  std::int64_t own_step = 0;
};
/// The new limits that an aggregation has set. Its owner takes them out and tells the workers.
using StepLimits = std::vector<StepLimit>;

/// How one shard aggregates. Workers are named by their index.
class Aggregation {
 public:
  static constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

  virtual ~Aggregation() = default;
  /// The worker trains from now on, from its own step `next_step`. Joining again replaces the
  /// worker's earlier state.
  virtual void joined(int worker, std::int64_t next_step, StepLimits& out) = 0;
  /// The worker begins to send the contributions of its own step `step`.
  virtual Fate arrived(int worker, std::int64_t step) = 0;
  /// All contributions of the step `step` have arrived, and are applied or kept.
  virtual void ended(int worker, std::int64_t step, StepLimits& out) = 0;
  /// The worker has made all its steps. It may go on until all others have made theirs. Nobody
  /// waits for this worker.
  virtual void done(int worker, StepLimits& out) = 0;
  /// The worker trains no more, because it has left or is lost. Nobody waits for this worker.
  virtual void left(int worker, StepLimits& out) = 0;
};

/// Every contribution is applied when it arrives.
class AsyncAggregation : public Aggregation {
 public:
  void joined(int, std::int64_t, StepLimits&) override {}
  Fate arrived(int, std::int64_t) override { return Fate::kApply; }
  void ended(int, std::int64_t, StepLimits&) override {}
  void done(int, StepLimits&) override {}
  void left(int, StepLimits&) override {}
};

/// Stale synchronous parallel (Ho et al., NIPS 2013). Contributions are applied when they arrive. A
/// worker whose ended steps exceed those of the slowest member by more than `staleness` waits for
/// that member. A worker that joins counts from the slowest member's step. A worker that is done
/// waits in the same way, unless all workers are done.
class BoundedStaleness : public Aggregation {
 public:
  explicit BoundedStaleness(std::int64_t staleness) : staleness_(staleness) {}
  void joined(int worker, std::int64_t next_step, StepLimits& out) override;
  Fate arrived(int, std::int64_t) override { return Fate::kApply; }
  void ended(int worker, std::int64_t step, StepLimits& out) override;
  void done(int worker, StepLimits& out) override;
  void left(int worker, StepLimits& out) override;

 private:
  struct Member {
    /// The number of the member's steps that have ended, plus the slowest clock when it joined.
    std::int64_t clock = 0;
    /// The number of the member's own next step when its clock has this value.
    std::int64_t next_step = 0;
    std::int64_t told = -1;  // the last limit that the member was told
    bool done = false;
  };
  Member* find(int worker);
  /// The slowest clock of the members that are not done.
  std::optional<std::int64_t> slowest() const;
  /// Takes the member's clock out of clocks_, so that no worker waits for the member.
  void forget_time_of(const Member& member);
  void tell_limit(int worker, StepLimits& out);
  /// Tells all workers their limits, if the slowest clock has changed since the previous time.
  void tell_limits(StepLimits& out);

  const std::int64_t staleness_;
  std::vector<std::optional<Member>> members_;  // by worker
  std::map<std::int64_t, int> clocks_;          // by clock: the number of members that are not done
  std::optional<std::int64_t> told_slowest_;
};

/// Throws kInvalidArgument when the spec makes no sense.
std::unique_ptr<Aggregation> make_aggregation(const AggregationSpec& spec);

}  // namespace paceline
