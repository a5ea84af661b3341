// One process of a simulated job, which applies its own contributions.
#pragma once

#include "predict/simulation/step_thread.h"

namespace paceline {

class SingleProcess : public StepThread {
 public:
  using StepThread::StepThread;
  void start() { go_on(); }

 private:
  bool may_begin() override { return true; }
  void begin_step() override {}
  bool has(VariableId) const override { return true; }
  void ready(VariableId variable, const std::function<void()>& done) override;
  void end_step() override {}
  bool answered() override { return true; }
};

}  // namespace paceline
