// How the processes of a launcher find each other when they know only their rank and one address.
#pragma once

#include <string>

#include "cli/flags/launch_environment.h"

namespace paceline {

/// The address at which the processes of a job meet, and the rank of this process. Only the
/// environment decides this; MeetingJob holds or joins the meeting.
struct MeetingPlan {
  std::string launcher;  // "torchrun"
  std::string seen;      // the variables: "RANK=2, WORLD_SIZE=4, MASTER_ADDR=a, MASTER_PORT=29500"
  int rank = 0, size = 0;
  // The number of parameter servers, which have the first ranks.
  int ps = 0;
  std::string address;
  bool one_host = false;  // all processes are on this host
  /// True if any process on the host of that address may hold the meeting: the first one that
  /// listens there does. If false, rank 0 holds it.
  bool any_may_hold = false;
  // Why the port differs from the one in the variables; empty if it does not.
  std::string why_there;
  // Says how users of this launcher give each process the job's key.
  std::string key_hint;
};

/// Each function reads the variables of one launcher. It throws kUsage, which names the variables,
/// if some of them are missing or if they contradict each other. meeting_plan() fills in `ps` and
/// `key_hint`.
MeetingPlan meeting_of_torchrun(const Environment& environment);
MeetingPlan meeting_of_pet(const Environment& environment);
/// Returns the plan for processes on one host, which meet on its loopback. Throws kUsage if there
/// are several hosts.
MeetingPlan meeting_of_open_mpi(const Environment& environment);
MeetingPlan meeting_of_pmi(const Environment& environment);

}  // namespace paceline
