// The tasks of a job that mpirun starts: workers of an all-reduce, worker i being rank i.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/flags/command_line.h"
#include "cluster/launch/held_ports.h"
#include "params/collective/mpi_calls.h"

namespace paceline {

/// Has joined the other processes of mpirun, and leaves them at the end of its life, unless an
/// exception ends that: mpirun then ends the others.
class MpiJob {
 public:
  /// Waits for the others, and tells them where this worker will listen. Throws kUnavailable with
  /// MPI's reason.
  MpiJob(const MpiCalls& calls, int workers_here);
  ~MpiJob();
  MpiJob(const MpiJob&) = delete;
  MpiJob& operator=(const MpiJob&) = delete;

  /// The flags that say the same: --cluster, --task, --threads, and --bind when there are several
  /// hosts.
  std::vector<GivenFlag> flags() const;

 private:
  const MpiCalls& calls_;
  const int workers_here_;
  const int exceptions_;
  const HeldPorts port_;
  std::string cluster_, port_text_;
};

/// The rank of this process when mpirun has started it.
std::optional<int> rank_by_mpirun();
/// When mpirun has started this process and no flag says what its task is, joins the others and
/// adds the flags that say so. Else, or with --alone, returns null; without a plug-in for MPI, too,
/// unless --collectives mpi asks for it: then it throws kFailedPrecondition.
std::unique_ptr<MpiJob> join_mpi_job(FlagValues& values);

}  // namespace paceline
