// For tests: runs a plan over the test's own variables.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exec/executor.h"
#include "exec/testing/fake_store.h"

namespace paceline {

// A plan with everything that it needs to run over `values`.
struct PlanRunner {
  PlanRunner(const PlanRequest& request, std::map<std::string, Tensor>& values, Device& device,
             const Clock& clock)
      : account(clock), locals(*request.graph, device) {
    const Graph* graphs[] = {request.graph};
    specs = variable_specs(graphs, request.training);
    plan = make_plan(request, specs, device);
    auto made = std::make_unique<FakeSteps>(specs, values, &calls);
    steps = made.get();
    steps->next_rows_wanted = true;
    executor = std::make_unique<Executor>(*plan, std::move(made), locals, device, account);
    rates.resize(specs.size(), 1.0f);
    account.reset();
  }
  void run(std::int64_t step = 0) {
    executor->run({StepKind::kTrain, rates, 1, {.seed = 1, .task = 0, .step = step}});
  }

  StepAccount account;
  LocalMemory locals;
  std::vector<VariableSpec> specs;
  std::unique_ptr<Plan> plan;
  std::vector<std::string> calls;
  FakeSteps* steps = nullptr;
  std::vector<float> rates;
  std::unique_ptr<Executor> executor;
};

}  // namespace paceline
