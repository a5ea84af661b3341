// Makes plans for tests, and describes what they do.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exec/plan.h"
#include "paceline/op.h"

namespace paceline {

class PlanTest : public testing::Test {
 protected:
  std::unique_ptr<Plan> make(const PlanRequest& request) {
    const Graph* graphs[] = {request.graph};
    specs_ = variable_specs(graphs, request.training);
    return make_plan(request, specs_, *device_);
  }
  std::unique_ptr<Plan> make(const Training& training, std::vector<Value> fetches = {}) {
    return make({.graph = &training.graph(),
                 .fetches = std::move(fetches),
                 .training = &training,
                 .run_assignments = true,
                 .rewrite = {}});
  }
  std::unique_ptr<Plan> fetch(std::vector<Value> fetches) {
    const Graph* graph = &fetches[0].graph();
    return make({.graph = graph,
                 .fetches = std::move(fetches),
                 .training = nullptr,
                 .run_assignments = true,
                 .rewrite = {}});
  }

  // Returns lines such as "need w", "matmul", "place w", "ready w", "copy".
  std::vector<std::string> text(const Plan& plan) const {
    std::vector<std::string> lines;
    for (const Instruction& instruction : plan.instructions) {
      const std::string name =
          instruction.variable < 0 ? "" : specs_[std::size_t(instruction.variable)].name;
      switch (instruction.kind) {
        case Instruction::Kind::kNeed:
          lines.push_back("need " + name);
          break;
        case Instruction::Kind::kPlace:
          lines.push_back("place " + name);
          break;
        case Instruction::Kind::kReady:
          lines.push_back("ready " + name);
          break;
        case Instruction::Kind::kCopy:
          lines.push_back("copy");
          break;
        case Instruction::Kind::kRun:
          lines.push_back(plan.kernels[std::size_t(instruction.kernel)].node->op().name);
      }
    }
    return lines;
  }

  // Returns a training that updates each variable with its given contribution, by the rule Add.
  static Training contributing(Value loss,
                               const std::vector<std::pair<Value, Value>>& contributions) {
    Training training;
    training.loss = loss;
    for (const auto& [variable, contribution] : contributions) {
      Gradient gradient;
      gradient.dense = contribution;
      training.updates.push_back({variable, gradient, Value(), Add{}, 0, 0, {}});
    }
    return training;
  }

  RealClock clock_;
  std::unique_ptr<Device> device_ = make_device({.kind = "naive"}, clock_);
  std::vector<VariableSpec> specs_;
  Graph graph_;
};

}  // namespace paceline
