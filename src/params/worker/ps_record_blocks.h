// The records that ps 0 has given to a worker, until its pipeline takes them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

#include "params/shared_record_blocks.h"
#include "params/wire/record_messages.h"

namespace paceline {

class PsRecordBlocks : public SharedRecordBlocks {
 public:
  /// The way to the job, which may end before the pipeline does.
  struct Job {
    std::function<void(const RecordWish&)> ask;
    std::function<bool()> ended;  // no worker is to begin another step
    std::function<void()> check;  // throws when it has failed, or is to stop
  };
  explicit PsRecordBlocks(Job job) : job_(std::move(job)) {}
  /// The job is no more.
  void leave();
  /// Adds an answer of ps 0.
  void add(const GivenRecords& given);

  RecordRange take(std::int64_t most) override;
  bool over() const override;
  bool revoked() const override { return false; }
  void check_wait() override;

 protected:
  std::int64_t began(const Wish& wish) override;

 private:
  void forget_read(std::int64_t records);
  void ask_ahead();

  mutable std::mutex mutex_;
  Job job_;
  std::deque<RecordRange> given_;  // not taken yet
  std::deque<RecordRange> taken_;  // not read by a step, as far as is known
  std::int64_t read_ = 0;          // records before those of taken_
  Wish wish_;
  std::int64_t ahead_ = 0;    // blocks that were asked for and are not taken
  std::int64_t unasked_ = 0;  // records of the next block, which are taken
  bool over_ = false, starves_ = false;
};

}  // namespace paceline
