// Synchronous rounds {k of n} over several shards. One coordinator, on ps 0, closes each round and
// names its contributors before any shard applies anything. Every shard carries out its words in
// their order; so all sum exactly the same contributions, and a worker that dies between its shards
// counts on none of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "params/protocol/aggregation.h"
#include "params/wire/round_messages.h"

namespace paceline {

/// A shard's part: it keeps every contribution until the coordinator has decided about it.
class RoundsAggregation : public Aggregation {
 public:
  void joined(int, std::int64_t, AggregationOutbox&) override {}
  Fate arrived(int, std::int64_t) override { return Fate::kKeep; }
  void ended(int, std::int64_t, AggregationOutbox&) override {}
  void done(int, AggregationOutbox&) override {}
  void left(int, AggregationOutbox&) override {}
};

struct RoundOptions {
  int shards = 1, workers = 1;
  int replicas = 0;  // so many contributions close a round; 0: those of all workers
  LateContribution late = LateContribution::kDrop;
  std::int64_t first_round = 0;
  bool workers_commit = false;  // commit() closes rounds, and nothing else does
};

/// Closes rounds. A worker has at most one contribution that is not decided. A round is closed when
/// enough contributions are whole on every shard, or fewer, if no member is left that could give
/// another. A worker that has not come yet is waited for like a member, until stop_waiting().
class RoundCoordinator {
 public:
  using Decisions = std::vector<RoundDecision>;
  explicit RoundCoordinator(const RoundOptions& options);

  /// The worker contributes from now on. If rounds were closed before, it may have read shards that
  /// had closed different ones: its first contribution counts nowhere. Nobody waits for it, and it
  /// is answered when a round is closed, so that the worker then begins together with the others;
  /// at once, if there are no others. The same incarnation may come
  /// back: what is whole of its contribution stays so. Another one's contribution is forgotten,
  /// since it was never answered.
  void joined(int worker, std::uint64_t incarnation, Decisions& out);
  /// Nobody waits for the worker. What it has given counts once it is whole on every shard.
  void left(int worker, Decisions& out);
  /// That process of the worker will not come back. Returns true when what it has given is whole
  /// and counts in the open round; otherwise it counts nowhere, whatever a shard may still say.
  bool forget_unless_whole(int worker, std::uint64_t incarnation, Decisions& out);
  /// All of the contribution is on the shard. It may say so after the worker has left.
  /// A skipped one (it has NaN) closes the round like any other, and counts nowhere; it is enough
  /// that one shard says so. Returns true when it is whole on every shard, so that the workers may
  /// commit it.
  bool whole(int shard, const RoundContribution& contribution, Decisions& out,
             bool skipped = false);
  /// The worker says that the round was committed: it consists of the contributions of these, which
  /// are whole. A round that is closed stays as it is. Throws kDataLoss when the contribution of
  /// another worker is not here.
  void commit(int worker, std::int64_t round, std::span<const std::int32_t> contributors,
              Decisions& out);
  /// The worker's contribution to the open round will not be committed: it counts nowhere.
  void withdraw(int worker, std::uint64_t incarnation, std::int64_t step, Decisions& out);
  /// True when the process of the worker that is connected now has contributed to the last round
  /// that was committed, and is not known to have committed it with other contributors.
  bool trains(int worker) const;
  /// Nobody waits any more for workers that have never come.
  void stop_waiting(Decisions& out);

  std::int64_t open_round() const { return open_; }
  int members() const;
  /// Workers that are waited for and have never come.
  std::vector<int> absent() const;

 private:
  enum class Standing : std::uint8_t { kAbsent, kMember, kAway };
  /// Its part in the open round. A contribution that is whole stays so, whatever its worker does.
  enum class Part : std::uint8_t { kNone, kAwaited, kWhole };
  struct Worker {
    Standing standing = Standing::kAbsent;
    std::uint64_t incarnation = 0;
    std::optional<RoundContribution> given;
    std::vector<bool> on;         // the shards where it is whole
    int shards = 0;               // how many they are
    bool skipped = false;         // it is to count nowhere
    bool fresh = false;           // it has given nothing yet
    bool joins = false;           // what it has given is its first, and is to count nowhere
    std::int64_t withdrawn = -1;  // that step of this incarnation counts nowhere
    std::uint64_t counted = 0;    // the incarnation whose contribution counted last
    Part part = Part::kAwaited;   // as it was last counted
  };
  /// Counts the worker's part anew; to be called when its contribution or standing has changed.
  void count(Worker& worker);
  /// Takes the contribution that the worker has given, which is decided.
  static RoundContribution taken(Worker& worker);
  bool is_whole(const Worker& worker) const { return worker.shards == options_.shards; }
  void displace(const RoundContribution& contribution, Decisions& out) const;
  void drop(Worker& worker, Decisions& out);
  void close(RoundDecision decision, Decisions& out);
  void close_full(Decisions& out);
  /// Returns false when more contributions are to come.
  bool close_one(Decisions& out);

  const RoundOptions options_;
  const int enough_;
  std::vector<Worker> workers_;
  int whole_ = 0, awaited_;  // workers by their part
  std::int64_t open_;
  std::vector<std::int32_t> committed_;  // the contributors of the last round, by commit()
};

/// Adds up the squares of the shards' parts of a round's mean.
class RoundNorms {
 public:
  explicit RoundNorms(int shards) : shards_(shards) {}
  /// The round was closed, and its mean is to be clipped by that norm.
  void expect(std::int64_t round, float clip_norm);
  /// Returns the scale once all shards have told their squares, which are summed in the order of
  /// the shards. What nobody expects is ignored.
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
