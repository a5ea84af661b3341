// A job whose processes another system has started, and which this process has joined.
#pragma once

#include <memory>

#include "cli/flags/command_line.h"

namespace paceline {

/// Lives as long as this process takes part.
class JoinedJob {
 public:
  JoinedJob() = default;
  virtual ~JoinedJob() = default;
  JoinedJob(const JoinedJob&) = delete;
  JoinedJob& operator=(const JoinedJob&) = delete;
};

/// When several processes were started by mpirun, torchrun or one of their like, and no flag says
/// what the task of this one is: joins the others, and adds the flags that say so. Else returns
/// null. Throws kUsage for what the environment alone shows, before anything is bound, and what
/// MpiJob and MeetingJob throw.
std::unique_ptr<JoinedJob> join_job(FlagValues& values);

}  // namespace paceline
