// Divides the wall time of a thread among activities, with one clock reading for each change.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "trace/timeline.h"

namespace paceline {

enum class Activity : std::uint8_t { kInput, kCompute, kPull, kPush, kApply, kWait, kOther };
constexpr int kActivityCount = 7;
std::string_view name_of(Activity activity);

/// The account of one thread. Every moment between begin and end belongs to exactly one activity.
class StepAccount {
 public:
  explicit StepAccount(const Clock& clock) : clock_(clock) {}

  /// Counts time as `activity` from now on; returns the previous activity.
  Activity change_to(Activity activity) {
    const TimePoint now = clock_.now();
    spent_[std::size_t(current_)] += now - since_;
    since_ = now;
    const Activity before = current_;
    current_ = activity;
    return before;
  }
  /// From now on, the waits of DeviceWaitScope also appear in the timeline, which must outlive this
  /// object.
  void show_device_waits(Timeline& timeline);
  /// Forgets all times; from now on, time counts as kOther.
  void reset();
  Duration spent(Activity activity) const { return spent_[std::size_t(activity)]; }
  Duration total() const;
  const Clock& clock() const { return clock_; }

 private:
  friend class DeviceWaitScope;

  const Clock& clock_;
  Timeline* timeline_ = nullptr;
  const TimelineLabel* device_wait_ = nullptr;
  TimePoint since_{};
  Activity current_ = Activity::kOther;
  std::array<Duration, kActivityCount> spent_{};
};

/// Counts the time of a block as `activity`; after the block, time counts as before.
class AccountScope {
 public:
  AccountScope(StepAccount& account, Activity activity)
      : account_(account), before_(account.change_to(activity)) {}
  ~AccountScope() { account_.change_to(before_); }
  AccountScope(const AccountScope&) = delete;
  AccountScope& operator=(const AccountScope&) = delete;

 private:
  StepAccount& account_;
  Activity before_;
};

/// Counts as compute the time of a block in which the thread waits for its device.
class DeviceWaitScope {
 public:
  explicit DeviceWaitScope(StepAccount& account)
      : compute_(account, Activity::kCompute), event_(account.timeline_, account.device_wait_) {}

 private:
  AccountScope compute_;
  TimelineScope event_;
};

}  // namespace paceline
