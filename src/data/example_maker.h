// Takes records through the stages of a pipeline.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "data/pipeline_plan.h"
#include "data/ticket_stream.h"

namespace paceline {

/// Records that cannot be read. Any number of threads.
class BadRecords {
 public:
  explicit BadRecords(const PipelinePlan& plan) : plan_(plan) {}
  bool contains(std::int64_t index) const;
  /// Counts a record once, and says so. Throws kDataLoss when there are too many.
  void add(std::int64_t index, const std::string& why);
  std::int64_t count() const { return count_; }

 private:
  const PipelinePlan& plan_;
  mutable std::mutex mutex_;
  std::map<std::int64_t, std::string> why_;  // by index
  std::atomic<std::int64_t> count_ = 0;
};

/// Counts of a stage: the records that went through it, and their time.
struct StageTimes {
  std::int64_t records = 0;
  Duration spent{};
};

/// Belongs to one thread.
class ExampleMaker {
 public:
  ExampleMaker(const PipelinePlan& plan, BadRecords& bad, const Clock& clock)
      : plan_(plan), bad_(bad), clock_(clock), times_(plan.stages.size() + 2) {}

  /// Reads the record and takes it through all stages but the last; when it is bad, the next good
  /// one of the source instead. False when another one stands in for it.
  bool prepare(const Ticket& ticket);
  /// The last stage.
  void write(std::span<float> values);
  std::int32_t label() const { return example_.label; }
  /// Adds the times of reading, each stage and the last one, which are then zero again.
  void hand_over_times(std::vector<StageTimes>& to);

 private:
  void make(std::int64_t index);
  std::size_t find_cached();
  void count(std::size_t stage, TimePoint since);

  const PipelinePlan& plan_;
  BadRecords& bad_;
  const Clock& clock_;
  Example example_;
  std::vector<StageTimes> times_;
};

}  // namespace paceline
