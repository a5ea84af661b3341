// The work of the steps of models.
#pragma once

#include "models/model.h"
#include "predict/step_cost.h"

namespace paceline::bench {

/// Returns the request for a plan of the step, made with `rewrite`. The request borrows the step.
PlanRequest request_of(const models::StepGraph& step, const RewriteOptions& rewrite = {});
StepCost step_work(const models::StepGraph& step, const RewriteOptions& rewrite = {});

}  // namespace paceline::bench
