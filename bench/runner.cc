#include "bench/runner.h"

#include "bench/step_work.h"
#include "params/local/local_store.h"
#include "train/initial_values.h"

namespace paceline::bench {

Runner::Runner(models::StepGraph step, const Options& options)
    : step_(std::move(step)), pool_(options.threads) {
  device_ = make_device({.threads = options.threads}, clock_);
  PlanRequest request = request_of(step_);
  request.rewrite.fuse = options.fuse;
  const std::vector<VariableSpec> specs = variable_specs({&request.graph, 1}, request.training);
  for (const VariableSpec& spec : specs) rates_.push_back(spec.rule.learning_rate());
  store_ = make_local_store(specs, &pool_, &account_);
  store_->write(initial_values({&request.graph, 1}, specs, 1), 0);
  plan_ = make_plan(request, specs, *device_);
  locals_ = std::make_unique<LocalMemory>(*request.graph, *device_);
  executor_ = std::make_unique<Executor>(*plan_, store_->bind(plan_->binding, plan_->clipped()),
                                         *locals_, *device_, account_);
}

Runner::~Runner() = default;

void Runner::run() {
  executor_->run({kind(), rates_, 1, {.seed = 1, .task = 0, .step = steps_++}});
}

}  // namespace paceline::bench
