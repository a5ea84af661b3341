// A job whose processes another system has started, and which this process has joined.
#pragma once

#include <memory>

#include "cli/flags/command_line.h"

namespace paceline {

/// The object lives for as long as this process takes part in the job.
class JoinedJob {
 public:
  JoinedJob() = default;
  virtual ~JoinedJob() = default;
  JoinedJob(const JoinedJob&) = delete;
  JoinedJob& operator=(const JoinedJob&) = delete;
};

/// If mpirun, torchrun or a similar system started several processes, and no flag says which task
/// this process is: joins the other processes, and adds the flags that say so. Otherwise returns
/// null. Throws kUsage for faults that the environment alone shows, before any port is bound, and
/// what MpiJob and MeetingJob throw.
std::unique_ptr<JoinedJob> join_job(FlagValues& values);

}  // namespace paceline
