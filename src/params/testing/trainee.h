// For tests: a small model with a sparse variable, and its plan on a store.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/philox.h"
#include "exec/executor.h"
#include "paceline/ops.h"
#include "params/joined_strategy.h"
#include "params/local/local_control.h"
#include "params/local/local_store.h"
#include "params/testing/job_fixture.h"

namespace paceline {

// A look-up in a table, and a dense layer.
class LookupModel {
 public:
  LookupModel(std::int64_t batch, const Rule& rule, float clip_norm) {
    ids_ = graph_.input("ids", {batch}, DType::kInt32);
    y_ = graph_.input("y", {batch, 3});
    const Value h = tanh(embedding_lookup(graph_.variable("table", {kRows, 4}), ids_));
    training_ = minimize(mean_squared_error(dense(h, 3, "out"), y_), rule,
                         {.clip_norm = clip_norm, .learning_rate = {}, .groups = {}});
  }
  static constexpr std::int64_t kRows = 20;
  std::vector<VariableSpec> specs() const {
    const Graph* graphs[] = {&graph_};
    return variable_specs(graphs, &*training_);
  }
  const Graph& graph() const { return graph_; }
  const Training& training() const { return *training_; }
  Value ids() const { return ids_; }
  Value y() const { return y_; }

 private:
  Graph graph_;
  Value ids_, y_;
  std::optional<Training> training_;
};

// A model's plan on a store. Batch n has the same examples in every trainee.
class Trainee {
 public:
  /// `batch` is the number of the first batch. Each step adds `batches` to the number.
  Trainee(ParameterStore& store, const LookupModel& model, std::unique_ptr<Device> device = nullptr,
          std::int64_t batch = 0, std::int64_t batches = 1)
      : model_(model),
        device_(device ? std::move(device) : make_device({.kind = "cpu", .threads = 1}, clock_)),
        locals_(model.graph(), *device_),
        batch_(batch),
        batches_(batches) {
    plan_ =
        make_plan({&model.graph(), {}, &model.training(), true, {}}, store.variables(), *device_);
    executor_ = std::make_unique<Executor>(*plan_, store.bind(plan_->binding, plan_->clip_norm),
                                           locals_, *device_, account_);
    for (const VariableSpec& spec : store.variables()) {
      rates_.push_back(spec.rule.learning_rate());
    }
  }
  /// Makes a step. Returns the loss of its batch.
  double step() {
    const TensorView ids = executor_->view(model_.ids()), y = executor_->view(model_.y());
    const std::int64_t size = ids.shape.elements();
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int64_t example = batch_ * size + i;
      ids.as<std::int32_t>()[i] =
          id_offset + std::int32_t((example * 7 + example * example) % LookupModel::kRows);
      for (std::int64_t k = 0; k < 3; ++k) {
        y.as<float>()[3 * i + k] = to_unit_float(philox(5, std::uint64_t(3 * example + k), 0)[0]);
      }
    }
    handle_ =
        &executor_->run({StepKind::kTrain,
                         rates_,
                         1,
                         {.seed = 1, .task = 0, .step = std::exchange(batch_, batch_ + batches_)}});
    return executor_->loss();
  }
  /// The global step of the last step.
  std::int64_t global_step() const { return handle_->global_step(); }
  /// The norm of the last step's own contributions, in a model that clips.
  double norm() const { return executor_->global_norm(); }
  double mean_of(int steps) {
    double sum = 0;
    for (int i = 0; i < steps; ++i) sum += step();
    return sum / steps;
  }
  std::int32_t id_offset = 0;  // makes ids of rows that do not exist

 private:
  const LookupModel& model_;
  RealClock clock_;
  std::unique_ptr<Device> device_;
  LocalMemory locals_;
  StepAccount account_{clock_};
  std::unique_ptr<Plan> plan_;
  std::unique_ptr<Executor> executor_;
  std::vector<float> rates_;
  std::int64_t batch_;
  const std::int64_t batches_;
  StepHandle* handle_ = nullptr;
};

inline JoinedStrategy joined_alone(const std::vector<VariableSpec>& specs) {
  JoinedStrategy made{make_local_store(specs, nullptr, nullptr), std::make_shared<LocalControl>()};
  made.store->write(initial_states(specs), 0);
  return made;
}

}  // namespace paceline
