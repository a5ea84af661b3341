// Synchronous rounds {k of n} over several shards. One coordinator, on ps 0, closes each round and
// names its contributors before any shard applies anything. Every shard carries out the
// coordinator's decisions in their order. So all shards sum exactly the same contributions. If a
// worker dies after it has contributed to only some of the shards, its contribution counts on none
// of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "params/protocol/aggregation.h"
#include "params/wire/round_messages.h"

namespace paceline {

/// What one shard does in rounds: it keeps every contribution until the coordinator has decided
/// about that contribution.
class RoundsAggregation : public Aggregation {
 public:
  void joined(int, std::int64_t, StepLimits&) override {}
  Fate arrived(int, std::int64_t) override { return Fate::kKeep; }
  void ended(int, std::int64_t, StepLimits&) override {}
  void done(int, StepLimits&) override {}
  void left(int, StepLimits&) override {}
};

struct RoundOptions {
  int shards = 1, workers = 1;
  int replicas = 0;  // this many contributions close a round; 0: those of all workers
  LateContribution late = LateContribution::kDrop;
  std::int64_t first_round = 0;
  bool workers_commit = false;  // commit() closes rounds, and nothing else does
};

/// Closes rounds. Each worker has at most one undecided contribution. A round closes when enough
/// contributions are whole on every shard, or fewer, if no other member could contribute. Until
/// stop_waiting(), a round also waits for workers that have never joined.
class RoundCoordinator {
 public:
  using Decisions = std::vector<RoundDecision>;
  explicit RoundCoordinator(const RoundOptions& options);

  /// The worker contributes from now on.
  ///
  /// If rounds were closed before, the worker may have read values of different rounds from the
  /// shards. So its first contribution counts nowhere, and nobody waits for it. This contribution
  /// is answered when a round closes, so that the worker then begins together with the others. If
  /// there are no others, it is answered at once. With workers_commit, the first contribution is
  /// one like any other.
  ///
  /// If the same incarnation comes back, its whole contributions stay whole. Those of another
  /// incarnation are forgotten, since they were never answered, unless the workers may have
  /// committed them.
  void joined(int worker, std::uint64_t incarnation, Decisions& out);
  /// Nobody waits for the worker any more. Its contribution still counts if it is whole on every
  /// shard.
  void left(int worker, Decisions& out);
  /// Call it when the process `incarnation` of the worker will not come back. Returns true when its
  /// contribution is whole and counts in the open round. Otherwise the contribution counts nowhere,
  /// even if a shard names it later.
  bool forget_unless_whole(int worker, std::uint64_t incarnation, Decisions& out);
  /// Call it when the shard has the whole contribution, even if the worker has left. A skipped
  /// contribution has NaN: the round closes as with any other contribution, but this one counts
  /// nowhere, even if only one shard calls it skipped. Returns true when the contribution is whole
  /// on every shard, so that the workers may commit it.
  bool whole(int shard, const RoundContribution& contribution, Decisions& out,
             bool skipped = false);
  /// The worker says that the workers have committed the round, from the whole contributions of
  /// `contributors`. A closed round stays as it is. Throws kDataLoss for a round that is not open
  /// yet, and when a named contribution is not whole here.
  void commit(int worker, std::int64_t round, std::span<const std::int32_t> contributors,
              Decisions& out);
  /// The workers will not commit this worker's contribution to the open round, so the contribution
  /// counts nowhere.
  void withdraw(int worker, std::uint64_t incarnation, std::int64_t step, Decisions& out);
  /// True when the worker's connected process has contributed to the last committed round. False
  /// when that process is known to have committed the round with other contributors.
  bool trains(int worker) const;
  /// From now on no round waits for workers that have never joined.
  void stop_waiting(Decisions& out);

  std::int64_t open_round() const { return open_; }
  int members() const;
  /// The workers that have never joined and that a round waits for.
  std::vector<int> absent() const;

 private:
  enum class Standing : std::uint8_t { kAbsent, kMember, kAway };
  /// Whether the open round has the worker's contribution: no (kNone), not yet (kAwaited), or yes
  /// (kWhole). A whole contribution stays whole, whatever its worker does.
  enum class Part : std::uint8_t { kNone, kAwaited, kWhole };
  struct Worker {
    Standing standing = Standing::kAbsent;
    std::uint64_t incarnation = 0;
    std::optional<RoundContribution> given;
    std::vector<bool> on;         // by shard: the contribution is whole there
    int shards = 0;               // the number of shards where the contribution is whole
    bool skipped = false;         // it counts nowhere
    bool fresh = false;           // the worker has contributed nothing yet
    bool joins = false;           // the worker's contribution is its first, and counts nowhere
    std::int64_t withdrawn = -1;  // its own step that was withdrawn, and so counts nowhere
    std::uint64_t counted = 0;    // the incarnation of the last contribution that counted
    Part part = Part::kAwaited;   // the worker's part as count() last found
  };
  /// Finds out anew whether the round has, awaits or lacks the worker's contribution (Part), and
  /// updates whole_ and awaited_. Call it when the worker's contribution or standing has changed.
  void count(Worker& worker);
  /// Takes the worker's contribution out, since the coordinator has decided about it.
  static RoundContribution taken(Worker& worker);
  bool is_whole(const Worker& worker) const { return worker.shards == options_.shards; }
  void displace(const RoundContribution& contribution, Decisions& out) const;
  void drop(Worker& worker, Decisions& out);
  void close(RoundDecision decision, Decisions& out);
  void close_full(Decisions& out);
  /// Returns false when the round waits for more contributions.
  bool close_one(Decisions& out);

  const RoundOptions options_;
  const int enough_;
  std::vector<Worker> workers_;
  int whole_ = 0, awaited_;  // how many workers have these parts
  std::int64_t open_;
  std::vector<std::int32_t> committed_;  // the contributors of the last round that commit() closed
};

/// Adds up the squares of the shards' parts of a round's mean.
class RoundNorms {
 public:
  explicit RoundNorms(int shards) : shards_(shards) {}
  /// A round was closed. Its mean is to be clipped by the norm `clip_norm`.
  void expect(std::int64_t round, float clip_norm);
  /// Returns the scale once all shards have told their squares, which are summed in the order of
  /// the shards. Ignores squares of a round that nobody expects.
  std::optional<RoundScale> add(int shard, const RoundSquares& squares);

 private:
  struct Round {
    float clip_norm = 0;
    std::vector<std::optional<double>> squares;  // by shard
  };
  const int shards_;
  std::map<std::int64_t, Round> rounds_;
};

}  // namespace paceline
