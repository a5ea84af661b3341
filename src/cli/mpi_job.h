// The tasks of a job that mpirun starts, when they exchange their addresses by MPI.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/flags/command_line.h"
#include "cli/joined_job.h"
#include "net/held_ports.h"
#include "params/collective/mpi_calls.h"

namespace paceline {

/// Has joined the other processes of mpirun, and leaves them at the end of its life, unless an
/// exception ends that: mpirun then ends the others.
class MpiJob : public JoinedJob {
 public:
  /// Waits for the others, and tells them where this task will listen. The first `ps` of them are
  /// parameter servers. Throws kUnavailable with MPI's reason.
  MpiJob(const MpiCalls& calls, int workers_here, int ps);
  ~MpiJob() override;

  /// The flags that say the same: --cluster, --task, --placed, --threads, and --bind when there are
  /// several hosts.
  std::vector<GivenFlag> flags() const;

 private:
  const MpiCalls& calls_;
  const int workers_here_, ps_;
  const int exceptions_;
  const HeldPorts port_;
  std::vector<std::string> addresses_;
  std::string port_text_;
};

/// When Open MPI has started this process, no flag says what its task is, and the processes are on
/// several hosts or --collectives mpi is given: joins the others by MPI, and adds the flags that
/// say so. Else returns null; without a plug-in for MPI, too, unless --collectives mpi asks for it:
/// then it throws kFailedPrecondition.
std::unique_ptr<JoinedJob> join_mpi_job(FlagValues& values);

}  // namespace paceline
