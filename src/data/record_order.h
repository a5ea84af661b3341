// The order in which a pipeline visits the records of its source.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace paceline {

/// The options that decide the order of an epoch's records.
struct OrderOptions {
  std::vector<std::int64_t> files;  // records of each
  int interleave = 0;  // how many files take turns; 0: all records are in the order of their index
  int part = 0, parts = 1;  // the shard
  std::int64_t pool = 0;    // records of the shuffle pool; 0: none
  std::uint64_t seed = 1;
};

/// Orders one epoch after another. The order is a function of the options and the epoch's number.
/// Only indices are shuffled, so starting in the middle of an epoch costs some nanoseconds for each
/// record before that place.
class RecordOrder {
 public:
  struct Next {
    std::int64_t index = 0;  // of the record in the source
    // The place in the epoch of all shards, after interleaving.
    std::int64_t place = 0;
  };

  explicit RecordOrder(OrderOptions options);
  /// Returns the number of the shard's records in an epoch: `next` may be called this many times
  /// after `begin`.
  std::int64_t size() const;
  void begin(std::int64_t epoch);
  Next next();
  /// Returns the fraction of the shuffle pool that holds records; nothing without a pool.
  std::optional<double> pool_fill() const;

 private:
  struct File {
    std::int64_t first = 0, left = 0;
  };
  std::int64_t next_interleaved();
  Next next_of_shard();
  bool open_file(File& into);
  void fill_pool();

  OrderOptions options_;
  std::vector<std::int64_t> first_;  // index of each file's first record
  std::int64_t all_ = 0;
  std::uint64_t file_key_ = 0, pool_key_ = 0;
  // The state of the epoch under way.
  std::int64_t epoch_ = 0, place_ = 0, shard_left_ = 0, drawn_ = 0;
  std::vector<std::int64_t> file_order_;
  std::size_t next_file_ = 0;
  std::vector<File> open_;
  std::size_t turn_ = 0;
  std::vector<Next> pool_;
};

}  // namespace paceline
