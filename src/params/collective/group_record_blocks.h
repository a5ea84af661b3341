// The records that this member of an all-reduce was dealt.
#pragma once

#include <cstdint>
#include <mutex>

#include "params/shared_record_blocks.h"

namespace paceline {

class CollectiveDriver;

/// The driver, which deals them, may end before the pipeline does.
class GroupRecordBlocks : public SharedRecordBlocks {
 public:
  explicit GroupRecordBlocks(CollectiveDriver& driver) : driver_(&driver) {}
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
  CollectiveDriver* driver_;  // null: it has ended
  std::int64_t limit_ = 0;
};

}  // namespace paceline
