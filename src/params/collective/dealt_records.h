// The records that this member of an all-reduce was dealt.
#pragma once

#include <cstdint>
#include <mutex>

#include "params/shared_records.h"

namespace paceline {

/// Where they come from.
class RecordDealer {
 public:
  virtual ~RecordDealer() = default;
  virtual void begin_records() = 0;
  virtual RecordRange take_records(std::int64_t limit, std::int64_t most) = 0;
  virtual bool records_over(std::int64_t limit) = 0;
  virtual bool records_revoked() = 0;
  /// Throws when the job has failed, or is to stop.
  virtual void check_job() = 0;
};

/// The dealer may end before the pipeline does.
class DealtRecords : public SharedRecords {
 public:
  explicit DealtRecords(RecordDealer& dealer) : dealer_(&dealer) {}
  void leave();
  /// There may be more, or what was taken is revoked. To be called without locks.
  void look_again() { tell_changed(); }

  RecordRange take(std::int64_t most) override;
  bool over() const override;
  bool revoked() const override;
  void check_wait() override;

 protected:
  std::int64_t began(const Wish& wish) override;

 private:
  mutable std::mutex mutex_;
  RecordDealer* dealer_;  // null: it has ended
  std::int64_t limit_ = 0;
};

}  // namespace paceline
