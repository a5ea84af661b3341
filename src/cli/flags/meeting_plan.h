// How the processes of a launcher find each other when they know only their rank and one address.
#pragma once

#include <string>

#include "cli/flags/launch_environment.h"

namespace paceline {

/// The place at which the processes of a job meet, and the rank of this one. The environment alone
/// decides it; MeetingJob holds or joins the meeting.
struct MeetingPlan {
  std::string launcher;  // "torchrun"
  std::string seen;      // the variables: "RANK=2, WORLD_SIZE=4, MASTER_ADDR=a, MASTER_PORT=29500"
  int rank = 0, size = 0;
  int ps = 0;  // the number of parameter servers, which are the first ranks
  std::string address;
  bool one_host = false;  // all of them are on this one
  /// Any process of the host of that address may be the meeting point, whichever listens there
  /// first; else rank 0 is.
  bool any_may_hold = false;
  std::string why_there;  // why the port differs from the variables' one; empty: it does not
  std::string key_hint;   // how users of this launcher give each process the job's key
};

/// The readers of one launcher's variables each. They throw kUsage, which names the variables, when
/// half of them are there or they contradict each other. They leave `ps` and `key_hint` to
/// meeting_plan().
MeetingPlan meeting_of_torchrun(const Environment& environment);
MeetingPlan meeting_of_pet(const Environment& environment);
/// Returns the plan for processes on one host, which meet on its loopback. Refuses several hosts.
MeetingPlan meeting_of_open_mpi(const Environment& environment);
MeetingPlan meeting_of_pmi(const Environment& environment);

}  // namespace paceline
