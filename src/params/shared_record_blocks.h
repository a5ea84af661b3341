// A worker's side of the records that its job shares out, for any kind of job.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>

#include "paceline/task_position.h"

namespace paceline {

/// What all kinds of jobs have in common: one pipeline that takes records, and the count of the
/// records that steps read.
class SharedRecordBlocks : public RecordBlocks {
 public:
  std::int64_t begin(const Wish& wish, std::function<void()> changed) override;
  void end() override;

  /// Steps that begin from now on read the taken records up to this number.
  void set_reads(std::int64_t records) { reads_ = records; }
  std::int64_t reads() const { return reads_; }
  /// True when a pipeline takes records, or has taken some.
  bool in_use() const { return in_use_; }

 protected:
  /// Asks the job for the records of the pipeline's wish. Returns begin()'s result.
  virtual std::int64_t began(const Wish& wish) = 0;
  /// Calls `changed`, if a pipeline takes records. Call it without locks.
  void tell_changed();

 private:
  std::mutex mutex_;
  std::function<void()> changed_;
  std::atomic<bool> in_use_{false};
  std::atomic<std::int64_t> reads_{0};
};

}  // namespace paceline
