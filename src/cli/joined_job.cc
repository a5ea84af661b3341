#include "cli/joined_job.h"

#include <chrono>
#include <optional>

#include "cli/flags/launch_environment.h"
#include "cli/flags/meeting_plan.h"
#include "cli/flags/security_reader.h"
#include "cli/meeting_job.h"
#include "cli/mpi_job.h"
#include "paceline/cluster.h"

namespace paceline {

std::unique_ptr<JoinedJob> join_job(FlagValues& values) {
  if (std::unique_ptr<JoinedJob> job = join_mpi_job(values)) return job;
  const std::optional<MeetingPlan> plan = meeting_plan(values, own_environment);
  if (!plan) return nullptr;
  return values.with_places([&]() -> std::unique_ptr<JoinedJob> {
    const double patience_s =
        values.positive_number("--join-timeout").value_or(Cluster().join_timeout_s);
    auto job = std::make_unique<MeetingJob>(
        *plan, read_security(values),
        std::chrono::duration_cast<Duration>(std::chrono::duration<double>(patience_s)));
    for (const GivenFlag& flag : job->flags()) {
      if (!values.given(flag.name)) values.add(flag);
    }
    return job;
  });
}

}  // namespace paceline
