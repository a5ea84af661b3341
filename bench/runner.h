// A graph that is ready to run, without a training around it.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "models/model.h"

namespace paceline::bench {

/// A clock that counts how often the steps read it.
class CountingClock : public Clock {
 public:
  TimePoint now() const override {
    ++readings_;
    return real_.now();
  }
  void sleep_until(TimePoint time) override { real_.sleep_until(time); }
  std::int64_t readings() const { return readings_; }

 private:
  RealClock real_;
  mutable std::int64_t readings_ = 0;
};

/// Runs steps of a graph with variables of this process, which start at their initial values.
/// Inputs and local variables are zero unless set. For one thread.
class Runner {
 public:
  struct Options {
    int threads = 1;
    bool fuse = true;
  };
  Runner(models::StepGraph step, const Options& options);
  ~Runner();

  void run();
  /// Returns the memory of an input or a local variable.
  TensorView view(std::string_view name) const { return executor_->view(name); }
  const Plan& plan() const { return *plan_; }
  /// The number of step-accounting calls so far.
  std::int64_t account_calls() const { return clock_.readings(); }

 private:
  StepKind kind() const { return step_.training ? StepKind::kTrain : StepKind::kEvaluate; }

  models::StepGraph step_;
  CountingClock clock_;
  StepAccount account_{clock_};
  ThreadPool pool_;
  std::unique_ptr<Device> device_;
  std::vector<float> rates_;
  std::unique_ptr<ParameterStore> store_;
  std::unique_ptr<Plan> plan_;
  std::unique_ptr<LocalMemory> locals_;
  std::unique_ptr<Executor> executor_;
  std::int64_t steps_ = 0;
};

}  // namespace paceline::bench
