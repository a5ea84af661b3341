// The pieces of docs/coming-from.md, each a function that trains a small model, and what they
// share.
#pragma once

#include <paceline/paceline.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

// A model that the pieces share: it learns |x| with one hidden layer.
struct Model {
  paceline::Value x, y, loss;
};

inline Model build(paceline::Graph& graph, std::int64_t rows) {
  using namespace paceline;
  const Value x = graph.input("x", {rows, 4}), y = graph.input("y", {rows, 4});
  const Value hidden = relu(dense(x, 16, "hidden"));
  return {x, y, mean_squared_error(dense(hidden, 4, "out"), y)};
}

// A batch of normally distributed x, and their absolute values.
inline std::function<void(paceline::Feed&)> noise(const Model& model, std::int64_t rows = 32) {
  return [model, rows](paceline::Feed& feed) {
    const auto x = feed.data<float>(model.x, {rows, 4}), y = feed.data<float>(model.y, {rows, 4});
    feed.normal(model.x);
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = std::abs(x[i]);
  };
}

using Piece = void(const paceline::Cluster& cluster, paceline::RunOptions run);

// training.cc
Piece train_in_a_loop, train_step_by_step, evaluate_beside_training, train_on_arrays;
Piece read_on_another_thread, save_and_resume, begin_with_saved_values, stop_early;
Piece accumulate_gradients;
// rules.cc
Piece schedule_the_learning_rate, clip_gradients, treat_layers_differently, average_the_weights;
Piece use_a_rule_of_ones_own, use_a_rule_of_whole_matrices, differentiate;
// models.cc
Piece drop_out, read_words, use_an_op_of_ones_own, compute_in_bfloat16;
// looking.cc
Piece write_summaries, record_a_timeline, print_what_is_there;
