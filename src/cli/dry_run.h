// The description of a job, from its flags and its graphs alone: --dry-run.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "exec/plan.h"
#include "paceline/cluster.h"
#include "paceline/run_options.h"

namespace paceline {

/// One kind of step of a job. It borrows what the request points to.
struct DryStep {
  std::string section;  // of the report that has this step's times; empty: the report itself
  PlanRequest request;
};

/// The cluster; parameters; which ps keeps what; FLOPs and bytes of a step, and its bytes on links.
/// Starts nothing and connects to nobody.
std::string dry_run_text(std::string_view model, std::span<const DryStep> steps,
                         const Cluster& cluster, const RunOptions& run);

/// Makes an observer that prints this of the first session that is planned, and lets none start.
MakeObserver show_dry_run();

}  // namespace paceline
