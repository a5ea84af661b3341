// The tasks of a job whose launcher tells each process its rank and one common address: they meet
// there, and learn the addresses of all.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/flags/command_line.h"
#include "cli/flags/meeting_plan.h"
#include "cli/joined_job.h"
#include "paceline/cluster.h"
#include "params/wire/meeting_messages.h"

namespace paceline {

struct LinkSecurity;
class HeldPorts;
class MeetingGuest;
class MeetingPoint;

/// Stays connected with the meeting point, or holds it, for all its life: a rank that is started
/// again finds the others there, and one that was started twice is refused.
class MeetingJob : public JoinedJob {
 public:
  /// Waits for the others, for as long as `patience`. Throws kUsage when their links leave the host
  /// and there is no key, kUnavailable when the meeting point is not there or its port is in use,
  /// and kFailedPrecondition with the meeting's reason, which names the ranks that are late.
  MeetingJob(const MeetingPlan& plan, const Security& security, Duration patience);
  ~MeetingJob() override;

  /// The flags that say the same: --cluster, --task, --placed, --threads, and --bind when there are
  /// several hosts.
  std::vector<GivenFlag> flags() const;

 private:
  void hold_meeting(Duration patience);
  Attendance attendance(Duration patience) const;

  const MeetingPlan plan_;
  const std::shared_ptr<const LinkSecurity> security_;
  std::unique_ptr<HeldPorts> port_;      // at which this task will listen
  std::unique_ptr<MeetingPoint> point_;  // null where another process holds it
  std::unique_ptr<MeetingGuest> guest_;
  Roster roster_;
};

}  // namespace paceline
