// A plan describes a pipeline: its source, its stages and their options.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/record_order.h"
#include "paceline/data.h"

namespace paceline {

/// The cache stage of a pipeline: it keeps each record in memory as the stages before it have made
/// it, until the cache is destroyed. Any number of threads may use it.
class RecordCache {
 public:
  /// Makes the cache of a source of `records` records. It keeps at most `most_bytes`.
  RecordCache(std::int64_t records, std::int64_t most_bytes);
  ~RecordCache();
  RecordCache(const RecordCache&) = delete;
  RecordCache& operator=(const RecordCache&) = delete;

  /// Fills in the bytes, size, layout and label of record `to.index`; returns false if the record
  /// is not kept.
  bool find(Example& to) const;
  /// Keeps a copy of the record, unless the cache would take more memory than is allowed.
  void keep(const Example& example);
  /// Returns the fraction of the allowed memory that is in use, or of the records that are kept,
  /// whichever is larger.
  double fill() const;

 private:
  struct Kept;
  const std::int64_t most_bytes_;
  std::vector<std::atomic<const Kept*>> kept_;
  std::atomic<std::int64_t> bytes_ = 0, records_ = 0;
};

struct PipelinePlan {
  /// A stage: a function, or a cache of what the stages before it have made.
  struct Stage {
    std::string name;
    std::function<void(Example&)> function;
    std::shared_ptr<RecordCache> cache;
  };
  std::shared_ptr<const RecordSource> source;
  OrderOptions order;
  std::optional<std::int64_t> epochs = 1;
  std::vector<Stage> stages;
  // The last stage.
  Shape shape;
  std::string into_name;
  std::function<void(Example&, std::span<float>)> into;
  // True if some stage hands on its records in the order in which they are finished.
  bool as_finished = false;
  bool shared_out = false;  // the job shares out its records
  std::int64_t batch = 0;   // 0: not given
  LastBatch last = LastBatch::kDrop;
  int prefetch = 2;
  int threads = 0;
  std::int64_t max_bad = 0;
  std::function<void(const std::string&)> on_bad;

  std::int64_t records() const;  // of the source
};

}  // namespace paceline
