// An aggregation stands between the arrival of a contribution, the application of its rule, and the
// answer. It decides whether a contribution is applied at once, kept for a round or dropped, and
// who may begin which step. Plain state machines: no thread, socket or clock inside.
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
  kAsync,    // every contribution is applied when it arrives
  kBounded,  // the same, and no worker is more than `staleness` own steps ahead of the slowest
  kRounds,   // the mean of one contribution of each worker is applied, round by round
};
/// All kinds, in the order of their codes on the wire.
inline constexpr std::array kAggregationKinds = {AggregationKind::kAsync, AggregationKind::kBounded,
                                                 AggregationKind::kRounds};

inline constexpr std::array kLateContributions = {LateContribution::kDrop, LateContribution::kFold};

/// The way in which the workers of a job train together; the chief declares it to every ps.
struct AggregationSpec {
  AggregationKind kind = AggregationKind::kAsync;
  std::int64_t staleness = 0;  // kBounded: own steps
  // kRounds:
  std::int32_t replicas = 0;  // so many contributions close a round; 0: those of all workers
  LateContribution late = LateContribution::kDrop;
  std::int32_t num_ps = 1;
  std::string coordinator = {};  // the address of ps 0, where others have to ask
  /// The workers say which contributions a round consists of, once they have committed it among
  /// themselves; ps 0 closes none of its own accord.
  bool workers_commit = false;
  bool operator==(const AggregationSpec&) const = default;
  /// True where a worker always waits between its contribution and its next step, so that others
  /// contribute after it: values that answer the contribution would be too old for that step.
  bool outdates_answers() const { return kind == AggregationKind::kBounded && staleness == 0; }
  /// "async", "ssp with staleness 3", "sync with 2 replicas to aggregate", "hybrid".
  std::string str() const;
};

/// An aggregation gives each contribution one of these.
enum class Fate : std::uint8_t {
  kApply,  // now, chunk by chunk as it arrives
  kKeep,   // it waits in a buffer until its round is closed
  kDrop,   // it was applied before, or is too late
};

/// The decisions of an aggregation. The owner empties it.
struct AggregationOutbox {
  /// The worker may begin its own steps up to this one.
  struct StepLimit {
    int worker = 0;
    std::int64_t own_step = 0;
  };
  /// All that the worker contributes to the round is on this shard.
  struct Whole {
    int worker = 0;
    std::int64_t round = 0;
  };
  /// The kept contributions of exactly these workers, in this order, are summed and applied; those
  /// of others to this round are dropped.
  struct Sum {
    std::int64_t round = 0;
    std::vector<int> contributors;
  };
  std::vector<StepLimit> limits;
  std::vector<Whole> whole;
  std::vector<Sum> sums;
  void clear();
};

/// The rule by which one shard aggregates. Workers are named by their index.
class Aggregation {
 public:
  static constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

  virtual ~Aggregation() = default;
  /// The worker trains from now on; `next_step` is its next own step. Joining again replaces its
  /// earlier state.
  virtual void joined(int worker, std::int64_t next_step, AggregationOutbox& out) = 0;
  /// The worker begins to send the contributions of its own step.
  virtual Fate arrived(int worker, std::int64_t step) = 0;
  /// The step's contributions are all here, and applied or kept.
  virtual void ended(int worker, std::int64_t step, AggregationOutbox& out) = 0;
  /// The worker has made all its steps, and may go on until all others have: nobody waits for it.
  virtual void done(int worker, AggregationOutbox& out) = 0;
  /// The worker trains no more: it has left or is lost. Nobody waits for it.
  virtual void left(int worker, AggregationOutbox& out) = 0;
};

/// Every contribution is applied when it arrives.
class AsyncAggregation : public Aggregation {
 public:
  void joined(int, std::int64_t, AggregationOutbox&) override {}
  Fate arrived(int, std::int64_t) override { return Fate::kApply; }
  void ended(int, std::int64_t, AggregationOutbox&) override {}
  void done(int, AggregationOutbox&) override {}
  void left(int, AggregationOutbox&) override {}
};

/// Stale synchronous parallel (Ho et al., NIPS 2013): contributions are applied when they arrive,
/// and a worker that has made `staleness` own steps more than the slowest member waits for it. A
/// worker that joins counts from the slowest member's step. One that is done waits as before, as
/// long as another one is not.
class BoundedStaleness : public Aggregation {
 public:
  explicit BoundedStaleness(std::int64_t staleness) : staleness_(staleness) {}
  void joined(int worker, std::int64_t next_step, AggregationOutbox& out) override;
  Fate arrived(int, std::int64_t) override { return Fate::kApply; }
  void ended(int worker, std::int64_t step, AggregationOutbox& out) override;
  void done(int worker, AggregationOutbox& out) override;
  void left(int worker, AggregationOutbox& out) override;

 private:
  struct Member {
    std::int64_t clock = 0;      // steps ended, on the scale that all members share
    std::int64_t next_step = 0;  // the same moment in own steps
    std::int64_t told = -1;      // the last limit that it was given
    bool done = false;
  };
  Member* find(int worker);
  /// The clock of the slowest of those that are not done.
  std::optional<std::int64_t> slowest() const;
  /// Nobody waits any more for the member where it is now.
  void forget_time_of(const Member& member);
  void tell_limit(int worker, AggregationOutbox& out);
  /// Tells all, if the slowest clock has moved since they were told.
  void tell_limits(AggregationOutbox& out);

  const std::int64_t staleness_;
  std::vector<std::optional<Member>> members_;  // by worker
  std::map<std::int64_t, int> clocks_;          // how many that are not done have each clock
  std::optional<std::int64_t> told_slowest_;
};

/// Throws kInvalidArgument when the spec makes no sense.
std::unique_ptr<Aggregation> make_aggregation(const AggregationSpec& spec);

}  // namespace paceline
