// Rounds {k of n} over several shards in virtual time: one coordinator, a machine per shard, and
// workers that send to each shard in their own time, die between them, come back, leave and join.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace paceline {

struct VirtualRoundsOptions {
  std::uint64_t seed = 1;
  int shards = 2, workers = 4, k = 3;
  std::int64_t rounds = 20;  // a worker leaves when it is told of this one
  // Probabilities, per worker or per round of one.
  double deaths = 0, restarts = 0, cuts = 0, leaves = 0, latecomers = 0;
  /// Faults that a test plants, to see that they are found.
  enum class Plant : std::uint8_t {
    kNone,
    kOneShardIsEnough,   // the coordinator counts what is whole on one shard
    kSumsWhatItHas,      // a shard sums what it has instead of what is named
    kForgetIncarnation,  // what an older process gave counts for the newer
    kDropsEarly,         // a shard drops what is for a round that it has not opened
  };
  Plant plant = Plant::kNone;
};

struct VirtualRoundsResult {
  struct Summed {
    int worker = 0;
    std::uint64_t incarnation = 0;
    bool operator==(const Summed&) const = default;
  };
  /// Each line, with the seed, is something that was not as it must be.
  std::vector<std::string> errors;
  std::vector<std::vector<Summed>> rounds;  // of the first shard
  std::int64_t late = 0;                    // contributions that a shard dropped
  std::int64_t early = 0;    // that came before the shard knew of the end of the round before
  std::int64_t partial = 0;  // that were whole on some shards and not on all
  std::int64_t of_dead = 0;  // that counted though their worker was dead
  std::uint64_t events = 0, hash = 0;
};

/// Runs to the end and checks: every shard sums the same contributions in the order of the workers;
/// what is whole on every shard in time counts, and nothing else; a round has k contributions, or
/// those of all members; nobody waits for ever.
VirtualRoundsResult run_virtual_rounds(const VirtualRoundsOptions& options);

}  // namespace paceline
