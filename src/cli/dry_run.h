// --dry-run: describes a job from its flags and its graphs alone.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "exec/plan.h"
#include "paceline/cluster.h"
#include "paceline/run_options.h"

namespace paceline {

/// One kind of step of a job. The request's pointers must stay valid.
struct DryStep {
  // The report's section that has this step's times; empty: the report itself.
  std::string section;
  PlanRequest request;
};

/// Returns a description of the job: its cluster and parameters, which ps keeps what, and the
/// FLOPs, the bytes and the bytes on links of a step. Starts no task and connects to none.
std::string dry_run_text(std::string_view model, std::span<const DryStep> steps,
                         const Cluster& cluster, const RunOptions& run);

/// Makes an observer that prints dry_run_text() of the first session that is planned, and lets no
/// session start.
MakeObserver show_dry_run();

}  // namespace paceline
