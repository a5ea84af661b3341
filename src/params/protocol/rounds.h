// Synchronous rounds {k of n} over several shards. One coordinator closes each round and names its
// contributors before any shard applies anything; so every shard sums exactly the same
// contributions in the same order, and a worker that dies between its shards counts on none of
// them.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "params/protocol/aggregation.h"

namespace paceline {

/// One shard's part: it keeps what arrives for the open round, and sums what the coordinator names.
/// A contribution's step is the number of the round that it is for.
class RoundsAggregation : public Aggregation {
 public:
  void joined(int, std::int64_t, AggregationOutbox&) override {}
  Fate arrived(int worker, std::int64_t round) override;
  void ended(int worker, std::int64_t round, AggregationOutbox& out) override;
  void left(int, AggregationOutbox&) override {}
  /// The coordinator has closed the round. Rounds are closed in their order.
  void closed(std::int64_t round, std::vector<int> contributors, AggregationOutbox& out);
  std::int64_t open_round() const { return open_; }

 private:
  std::int64_t open_ = 0;
};

/// What the coordinator tells every shard.
struct RoundClosed {
  std::int64_t round = 0;
  std::vector<int> contributors;  // ascending
};

/// The coordinator's part, on ps 0. A round closes when the contributions of k members, or of all
/// if they are fewer, are whole on every shard.
class RoundCoordinator {
 public:
  RoundCoordinator(int shards, int workers, int k);

  void joined(int worker, std::vector<RoundClosed>& out);
  /// What it has given to the open round counts if it is whole on every shard, and else nowhere.
  void left(int worker, std::vector<RoundClosed>& out);
  /// A shard says that the worker's contribution to the round is whole there.
  void whole(int shard, int worker, std::int64_t round, std::vector<RoundClosed>& out);
  std::int64_t open_round() const { return open_; }

 private:
  void close_if_full(std::vector<RoundClosed>& out);

  const int shards_, k_;
  std::vector<bool> members_;       // by worker
  std::vector<std::set<int>> has_;  // by worker: the shards where its contribution is whole
  std::int64_t open_ = 0;
};

}  // namespace paceline
