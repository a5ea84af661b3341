// For tests: a small model whose gradients the test computes, as another framework would.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/copy_bytes.h"
#include "base/real_clock.h"
#include "graph/initializer_of.h"
#include "kernels/evaluate.h"
#include "paceline/external_store.h"
#include "paceline/ops.h"

namespace paceline {

/// A multilayer perceptron. If there is a table, its inputs are added to the rows that a batch
/// reads.
class ExternalTrainee {
 public:
  static constexpr std::int64_t kInputs = 6, kOutputs = 3, kTable = 40;

  /// Learns from part number `part` of `parts` equal parts of each batch of 12 examples.
  explicit ExternalTrainee(bool table, int part = 0, int parts = 1)
      : examples_(12 / parts), first_(examples_ * part), has_table_(table) {
    x_ = graph.input("x", {examples_, kInputs});
    y_ = graph.input("y", {examples_, kOutputs});
    ids_ = graph.input("ids", {examples_}, DType::kInt32);
    Value h = x_;
    if (table) {
      const Value embedding =
          graph.variable("table", {kTable, kInputs}, Initializer::uniform(-1, 1));
      h = add(h, embedding_lookup(embedding, ids_));
    }
    h = tanh(dense(h, 16, "hidden"));
    loss = reduce_mean(square(sub(dense(h, kOutputs, "out"), y_)));
    for (const auto& node : graph.nodes()) {
      if (node->op().name == "variable") variables_.push_back(node->output(0));
    }
    std::vector<Value> dense_ones(variables_.begin() + (table ? 1 : 0), variables_.end());
    if (table) dense_ones.insert(dense_ones.begin(), h_of_lookup());
    roots_ = {loss};
    const std::vector<Value> by = gradients(loss, dense_ones);
    roots_.insert(roots_.end(), by.begin(), by.end());
  }

  /// Returns the variables with the values with which a session of `seed` 1 begins.
  std::vector<ExternalVariable> variables() const {
    std::vector<ExternalVariable> made;
    for (const Value& variable : variables_) {
      ExternalVariable& of = made.emplace_back();
      of.name = variable.name();
      of.initial = initial(variable);
      if (has_table_ && made.size() == 1) of.most_rows = examples_;
    }
    return made;
  }
  std::vector<std::int32_t> ids(std::int64_t step) const {
    std::vector<std::int32_t> made;
    for (std::int64_t i = 0; i < examples_; ++i) {
      made.push_back(std::int32_t((step * 7 + (first_ + i) * (first_ + i)) % kTable));
    }
    return made;
  }
  void fill(Feed& feed) const {
    const auto [x, y] = inputs(feed.step());
    feed.set(x_, x).set(y_, y);
    feed.set(ids_, Tensor::of<std::int32_t>({examples_}, ids(feed.step())));
  }
  ExternalStep step(std::int64_t number) const {
    ExternalStep made;
    if (has_table_) made.rows = {{0, ids(number)}};
    return made;
  }

  /// The loss and the gradients of a batch; the table's gradient has the batch's rows.
  struct Computed {
    double loss = 0;
    std::vector<Tensor> gradients;
  };
  Computed compute(ExternalStore& store, std::int64_t number) {
    Feeds feeds;
    std::tie(feeds["x"], feeds["y"]) = inputs(number);
    feeds["ids"] = Tensor::of<std::int32_t>({examples_}, ids(number));
    for (std::size_t v = 0; v < variables_.size(); ++v) {
      const TensorView value = store.need(int(v));
      Tensor copy(value.dtype, value.shape);
      copy_bytes(copy.raw(), value.data, value.bytes());
      if (has_table_ && v == 0) {
        Tensor table(DType::kFloat32, variables_[0].shape());
        const std::vector<std::int32_t> rows = ids(number);
        for (std::size_t i = 0; i < rows.size(); ++i) {
          std::copy_n(copy.data<float>().data() + i * kInputs, kInputs,
                      table.data<float>().data() + rows[i] * kInputs);
        }
        copy = table;
      }
      feeds[variables_[v].name()] = copy;
    }
    const std::vector<Tensor> all = evaluate_graph(roots_, feeds, *device_);
    Computed made;
    made.loss = double(all[0].item<float>());
    made.gradients.assign(all.begin() + 1, all.end());
    return made;
  }
  void hand_over(ExternalStore& store, int variable, const Tensor& gradient, std::int64_t number) {
    auto owner = std::make_shared<Tensor>(gradient);
    if (has_table_ && variable == 0) {
      store.ready(0, ids(number), gradient.view(), owner);
    } else {
      store.ready(variable, gradient.view(), owner);
    }
  }
  /// Makes a step and returns its result; nothing when training has ended.
  std::optional<StepResult> make_step(ExternalStore& store, std::int64_t number) {
    if (!store.begin_step(step(number))) return std::nullopt;
    const Computed made = compute(store, number);
    for (std::size_t v = made.gradients.size(); v-- > 0;) {
      hand_over(store, int(v), made.gradients[v], number);
    }
    return store.end_step(made.loss);
  }
  std::vector<double> train(ExternalStore& store, std::int64_t first, std::int64_t steps) {
    std::vector<double> losses;
    for (std::int64_t i = first; i < first + steps; ++i) {
      const auto made = make_step(store, i);
      if (!made) break;
      losses.push_back(made->loss);
    }
    return losses;
  }

  Graph graph;
  Value loss;

 private:
  Value h_of_lookup() const {
    for (const auto& node : graph.nodes()) {
      if (node->op().name == "embedding_lookup") return node->output(0);
    }
    return {};
  }
  static Tensor initial(const Value& variable) {
    Tensor made(DType::kFloat32, variable.shape());
    initializer_of(variable.node())
        .fill(made.data<float>(), made.shape(), RunOptions().seed, variable.name());
    return made;
  }
  std::pair<Tensor, Tensor> inputs(std::int64_t step) const {
    Tensor x(DType::kFloat32, {examples_, kInputs}), y(DType::kFloat32, {examples_, kOutputs});
    for (std::int64_t row = 0; row < examples_; ++row) {
      for (std::int64_t c = 0; c < kInputs; ++c) {
        x.data<float>()[std::size_t(row * kInputs + c)] =
            float(std::sin(double(step * 131 + (first_ + row) * 17 + c * 5)));
      }
      for (std::int64_t c = 0; c < kOutputs; ++c) {
        y.data<float>()[std::size_t(row * kOutputs + c)] =
            x.data<float>()[std::size_t(row * kInputs + c)] * 1.5f;
      }
    }
    return {x, y};
  }

  const std::int64_t examples_, first_;
  const bool has_table_;
  Value x_, y_, ids_;
  std::vector<Value> variables_;
  std::vector<Value> roots_;  // the loss and the gradients
  RealClock clock_;
  std::unique_ptr<Device> device_ = make_device({.kind = "naive", .threads = 1}, clock_);
};

}  // namespace paceline
