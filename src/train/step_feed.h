// Feed for the inputs of one executor.
#pragma once

#include <string>

#include "exec/executor.h"
#include "paceline/session.h"
#include "train/normal_table.h"

namespace paceline {

class StepFeed : public Feed {
 public:
  /// Executor and table must outlive the feed, which is made for one step.
  StepFeed(const Executor& executor, const NormalTable& normals, const StepIdentity& identity)
      : executor_(executor), normals_(normals), identity_(identity) {}

  TensorView view(Value input) override { return executor_.view(input); }
  Feed& normal(Value input) override;
  Feed& set(Value input, const Tensor& tensor) override;
  void stop() override { stopped_ = true; }
  std::int64_t step() const override { return identity_.step; }
  bool stopped() const { return stopped_; }

 private:
  const Executor& executor_;
  const NormalTable& normals_;
  StepIdentity identity_;
  bool stopped_ = false;
};

}  // namespace paceline
