// The cache stage of a pipeline keeps each record in memory as the stages before it have made it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "paceline/data.h"

namespace paceline {

/// Any number of threads. What is kept stays until the cache is destroyed.
class RecordCache {
 public:
  /// For a source of so many records.
  RecordCache(std::int64_t records, std::int64_t most_bytes);
  ~RecordCache();
  RecordCache(const RecordCache&) = delete;
  RecordCache& operator=(const RecordCache&) = delete;

  /// Fills bytes, size, layout and label of the record `to.index`; false when it is not kept.
  bool find(Example& to) const;
  /// Keeps a copy, unless that takes more memory than is allowed.
  void keep(const Example& example);
  /// The part of the memory that is in use, or of the records, whichever is more.
  double fill() const;

 private:
  struct Kept;
  const std::int64_t most_bytes_;
  std::vector<std::atomic<const Kept*>> kept_;
  std::atomic<std::int64_t> bytes_ = 0, records_ = 0;
};

}  // namespace paceline
