#include "bench/step_work.h"

namespace paceline::bench {

PlanRequest request_of(const models::StepGraph& step, const RewriteOptions& rewrite) {
  PlanRequest request;
  request.graph = step.graph.get();
  request.fetches = step.fetches;
  request.training = step.training ? &*step.training : nullptr;
  request.rewrite = rewrite;
  return request;
}

StepCost step_work(const models::StepGraph& step, const RewriteOptions& rewrite) {
  return step_work(request_of(step, rewrite));
}

}  // namespace paceline::bench
