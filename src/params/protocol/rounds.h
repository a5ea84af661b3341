// Synchronous rounds {k of n} over several shards. One coordinator closes each round and names its
// contributors before any shard applies anything; so every shard sums exactly the same
// contributions in the same order, and a worker that dies between its shards counts on none of
// them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "params/protocol/aggregation.h"

namespace paceline {

/// One shard's part: it keeps what arrives for the rounds that are not closed here, and sums what
/// the coordinator names. A contribution's step is the number of the round that it is for; it may
/// be of a round after the open one, because other shards may hear of the end of a round earlier.
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

/// The word of the coordinator to every shard.
struct RoundClosed {
  std::int64_t round = 0;
  std::vector<int> contributors;  // ascending
};

/// The coordinator's part, on ps 0. A round closes when k contributions are whole on every shard,
/// or fewer if no member is left that could give another.
class RoundCoordinator {
 public:
  RoundCoordinator(int shards, int workers, int k);

  /// Returns the first round that the worker contributes to, which may be the one after the open
  /// round. The same incarnation may come back: what is whole of its contribution stays so. Of
  /// another incarnation, a contribution that is whole on every shard still counts, and any other
  /// counts nowhere.
  std::int64_t joined(int worker, std::uint64_t incarnation);
  /// Nobody waits for the worker. What it has given to the open round counts if it is whole on
  /// every shard, and else nowhere.
  void left(int worker, std::vector<RoundClosed>& out);
  /// A shard says that this incarnation's contribution to the round is whole there. It may say so
  /// after the worker has left.
  void whole(int shard, int worker, std::uint64_t incarnation, std::int64_t round,
             std::vector<RoundClosed>& out);
  std::int64_t open_round() const { return open_; }

 private:
  struct Contributor {
    bool member = false;
    std::uint64_t incarnation = 0;
    // The shards where its contribution is whole, by round from the open one on.
    std::map<std::int64_t, std::set<int>> has;
  };
  bool is_whole(const Contributor& worker, std::int64_t round) const;
  void close_full(std::vector<RoundClosed>& out);
  /// Returns false when more contributions are to come.
  bool close_one(std::vector<RoundClosed>& out);

  const int shards_, k_;
  std::vector<Contributor> workers_;
  std::int64_t open_ = 0;
};

}  // namespace paceline
