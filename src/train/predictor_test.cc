// A predictor gives the results of a session's evaluation with the same values.
#include "paceline/predictor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <optional>

#include "base/temporary_folder.h"
#include "base/testing/error_of.h"
#include "checkpoint/safetensors_writer.h"
#include "paceline/ops.h"
#include "paceline/session.h"

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

/// A classifier of rows of numbers and words, with a table that is trained by rows.
struct Network {
  Value x, ids, labels;
  Value logits = {}, loss = {};
};

Network build(Graph& graph, std::int64_t rows, std::int64_t hidden = 8) {
  Network made{.x = graph.input("x", {rows, 3}),
               .ids = graph.input("ids", {rows}, DType::kInt32),
               .labels = graph.input("labels", {rows}, DType::kInt32)};
  const Value table = graph.variable("table", {20, 3}, Initializer::uniform(-1, 1));
  const Value h = tanh(dense(add(made.x, embedding_lookup(table, made.ids)), hidden, "hidden"));
  made.logits = graph.named("logits", dense(h, 4, "out"));
  made.loss = reduce_mean(softmax_cross_entropy(made.logits, made.labels));
  return made;
}

class PredictorTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 8;

  PredictorTest() : network_(build(graph_, kRows)) {
    run_.quiet = true;
    run_.out = folder_.path("run");
    run_.steps = 5;
    run_.save_every = Interval();
    cluster_.threads = 1;
    options_.threads = 1;
  }

  static Tensor numbers(std::int64_t rows) {
    Tensor made(DType::kFloat32, {rows, 3});
    const auto data = made.data<float>();
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = 0.1f * float(i % 17) - 0.7f;
    return made;
  }
  static Tensor words(std::int64_t rows) {
    Tensor made(DType::kInt32, {rows});
    const auto data = made.data<std::int32_t>();
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = std::int32_t((3 * i + 1) % 20);
    return made;
  }
  /// Trains, saves, and returns an evaluation's results for the first rows.
  Tensor trained(EvaluateWith with = EvaluateWith::kVariables, const SessionOptions& options = {}) {
    const Training training =
        minimize(network_.loss, Adam{.learning_rate = 0.1f}, {.average_decay = 0.5f});
    Session session(training, cluster_, run_, options);
    while (session.run([&](Feed& feed) {
      feed.set(network_.x, numbers(kRows)).set(network_.ids, words(kRows));
      for (std::int32_t& label : feed.data<std::int32_t>(network_.labels)) label = 2;
    })) {
    }
    session.begin_evaluation(with);
    return session.evaluate(network_.logits, [&](Feed& feed) {
      feed.set(network_.x, numbers(kRows)).set(network_.ids, words(kRows));
    });
  }
  Tensor predict(const Predictor& predictor, std::int64_t rows) const {
    return predictor.predict({{network_.x, numbers(rows)}, {network_.ids, words(rows)}})[0];
  }
  /// Returns the message with which a predictor of `graph` refuses the run's checkpoint.
  std::string refusal(const Graph& graph, Value output, ErrorCode code) const {
    return error_of(code, [&] { const Predictor refused(graph, {output}, run_.out, options_); });
  }
  static void expect_first_rows(const Tensor& of, const Tensor& all) {
    const auto some = of.data<float>(), expected = all.data<float>();
    for (std::size_t i = 0; i < std::min(some.size(), expected.size()); ++i) {
      ASSERT_EQ(some[i], expected[i]) << i;
    }
  }

  TemporaryFolder folder_;
  Graph graph_;
  const Network network_;
  Cluster cluster_;
  RunOptions run_;
  PredictorOptions options_;
};

TEST_F(PredictorTest, ComputesWhatASessionEvaluates) {
  const Tensor expected = trained();
  const Predictor predictor(graph_, {network_.logits}, run_.out, options_);
  const Tensor computed = predict(predictor, kRows);
  EXPECT_EQ(computed.shape(), expected.shape());
  expect_first_rows(computed, expected);
  EXPECT_EQ(predictor.global_step(), 5);
  EXPECT_EQ(predictor.batch(), kRows);
  EXPECT_EQ(predictor.checkpoint(), run_.out + "/checkpoints/step-5");
}

TEST_F(PredictorTest, ComputesWithMovingAverages) {
  const Tensor expected = trained(EvaluateWith::kAverages);
  options_.with = EvaluateWith::kAverages;
  const Tensor averaged = predict(Predictor(graph_, {network_.logits}, run_.out, options_), kRows);
  expect_first_rows(averaged, expected);
  options_.with = EvaluateWith::kVariables;
  const Tensor newest = predict(Predictor(graph_, {network_.logits}, run_.out, options_), kRows);
  EXPECT_NE(newest.data<float>()[0], averaged.data<float>()[0]);
}

TEST_F(PredictorTest, TakesFewerAndMoreRowsThanABatchHas) {
  const Tensor expected = trained();
  const Predictor predictor(graph_, {network_.logits}, run_.out, options_);
  const Tensor all = predict(predictor, 2 * kRows + 5);
  EXPECT_EQ(all.shape(), Shape({2 * kRows + 5, 4}));
  expect_first_rows(all, expected);
  for (const std::int64_t rows : {std::int64_t(1), kRows - 1, kRows + 1, 2 * kRows}) {
    const Tensor some = predict(predictor, rows);
    EXPECT_EQ(some.shape(), Shape({rows, 4}));
    expect_first_rows(some, all);
  }
}

TEST_F(PredictorTest, ComputesOnSeveralThreadsAtOnce) {
  trained();
  const Predictor predictor(graph_, {network_.logits}, run_.out, options_);
  const Tensor all = predict(predictor, 40);
  std::vector<std::future<void>> threads;
  for (std::int64_t thread = 0; thread < 6; ++thread) {
    threads.push_back(std::async(std::launch::async, [&, thread] {
      for (std::int64_t rows = 1; rows < 30; ++rows) {
        expect_first_rows(predict(predictor, rows + thread), all);
      }
    }));
  }
  for (std::future<void>& thread : threads) thread.get();
}

TEST_F(PredictorTest, ListsWhatAWrongCheckpointLacks) {
  trained();
  Graph wider, another;
  const std::string shapes =
      refusal(wider, build(wider, kRows, 9).logits, ErrorCode::kFailedPrecondition);
  EXPECT_THAT(shapes, AllOf(HasSubstr("step-5 is a checkpoint of another model:"),
                            HasSubstr("hidden/w: (3,8) float32 in the checkpoint, (3,9) float32 in "
                                      "the model"),
                            HasSubstr("out/w: (8,4)")));
  const Value rows = another.input("x", {kRows, 3});
  const Value counts = another.variable("table", {20, 3}, {}, DType::kInt32);
  const Value named = dense(rows, 2, "another");
  const Value both = add(named, cast(slice(counts, {0, 0}, {kRows, 2}), DType::kFloat32));
  EXPECT_THAT(refusal(another, both, ErrorCode::kFailedPrecondition),
              AllOf(HasSubstr("another/w: only in the model"),
                    HasSubstr("table: (20,3) float32 in the checkpoint, (20,3) int32 in the "
                              "model")));
}

TEST_F(PredictorTest, ACheckpointTellsOfItsModel) {
  run_.settings = {{"hidden", "8"}, {"path", "caf\xE9"}};
  trained({}, {.model = "rows", .data_names = {{"classes", {"a", "b", "c", "d"}}}});
  std::filesystem::create_directory(run_.out + "/checkpoints/step-9");
  const SavedModel saved = saved_model(run_.out);
  EXPECT_EQ(saved.path, run_.out + "/checkpoints/step-5");
  EXPECT_EQ(saved.global_step, 5);
  EXPECT_EQ(saved.model, "rows");
  EXPECT_THAT(saved.settings, ElementsAre(Pair("hidden", "8"), Pair("path", "caf\xEF\xBF\xBD")));
  EXPECT_THAT(saved.data_names, ElementsAre(Pair("classes", ElementsAre("a", "b", "c", "d"))));
  EXPECT_EQ(saved.names("classes").size(), 4U);
  EXPECT_THAT(error_of(ErrorCode::kNotFound, [&] { saved.names("words"); }),
              AllOf(HasSubstr(saved.path), HasSubstr("'words'")));
  EXPECT_THAT(saved.passed_over, ElementsAre(HasSubstr("step-9")));
}

TEST_F(PredictorTest, RefusesWhatHasNoCheckpoint) {
  EXPECT_THAT(
      error_of(ErrorCode::kNotFound,
               [&] { const Predictor refused(graph_, {network_.logits}, folder_.path("none")); }),
      HasSubstr(folder_.path("none")));
}

TEST_F(PredictorTest, TakesTensorsOfPyTorchModules) {
  trained();
  std::vector<NamedTensor> tensors = {{"table", Tensor(DType::kFloat32, {20, 3})},
                                      {"first.weight", Tensor(DType::kFloat32, {8, 3})},
                                      {"first.bias", Tensor(DType::kFloat32, {8})},
                                      {"out.weight", Tensor(DType::kFloat32, {4, 8})},
                                      {"out.bias", Tensor::of<float>({4}, {1, 2, 3, 4})}};
  const std::string file = folder_.path("model.safetensors");
  write_safetensors(file, tensors);
  options_.modules = {{"hidden", "first"}};
  const Predictor predictor(graph_, {network_.logits}, file, options_);
  EXPECT_EQ(predict(predictor, 1).data<float>()[3], 4);
  EXPECT_EQ(predictor.global_step(), -1);
}

TEST_F(PredictorTest, RefusesOutputsThatAreNotByRows) {
  trained();
  const auto refused = [&](const Graph& graph, const std::vector<Value>& outputs) {
    return error_of(ErrorCode::kInvalidArgument,
                    [&] { const Predictor refused(graph, outputs, run_.out, options_); });
  };
  EXPECT_THAT(refused(graph_, {}), HasSubstr("no output is asked for"));
  EXPECT_THAT(refused(graph_, {network_.loss}), HasSubstr("its dimension 0 must be the batch"));
  EXPECT_THAT(refused(graph_, {network_.logits, graph_.find("table")}),
              HasSubstr("'out/bias' is float32 (8,4), and 'table' float32 (20,3)"));
  Graph other;
  EXPECT_THAT(refused(other, {network_.logits}), HasSubstr("'out/bias' is of another graph"));
}

/// Images pass through a batch norm and a dropout; the graph is for training, or written for
/// inference without a dropout.
struct Modes {
  Value x, y;
};

Modes modes(Graph& graph, bool training) {
  const Value x = graph.input("x", {4, 2, 3, 3});
  const Value normed = batch_norm(x, "norm", {.training = training});
  const Value kept = training ? dropout(normed, 0.5) : normed;
  return {x, reduce_sum(kept, {1, 2, 3})};
}

TEST_F(PredictorTest, AGraphThatTrainsEvaluatesAndServes) {
  Graph trains, infers;
  const Modes own = modes(trains, true), plain = modes(infers, false);
  Tensor images(DType::kFloat32, {4, 2, 3, 3});
  const auto data = images.data<float>();
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = float(i % 7) - 0.3f * float(i % 5);
  const auto feed = [&](Feed& to) { to.set(own.x, images); };
  const auto floats = [](const Tensor& of) {
    return std::vector<float>(of.data<float>().begin(), of.data<float>().end());
  };
  std::vector<float> evaluated;
  {
    Session session(minimize(reduce_mean(square(own.y)), Sgd{0.1f}), cluster_, run_);
    session.run(feed);
    evaluated = floats(session.evaluate(own.y, feed));
    EXPECT_NE(floats(session.evaluate(own.y, feed, Mode::kTrain)), evaluated);
  }
  const Predictor written(infers, {plain.y}, run_.out, options_);
  const Predictor same(trains, {own.y}, run_.out, options_);
  EXPECT_EQ(floats(written.predict({{plain.x, images}})[0]), evaluated);
  EXPECT_EQ(floats(same.predict({{own.x, images}})[0]), evaluated);
}

TEST_F(PredictorTest, RefusesTensorsThatDoNotFit) {
  trained();
  const Predictor predictor(graph_, {network_.logits}, run_.out, options_);
  const auto refused = [&](ErrorCode code, const std::vector<std::pair<Value, Tensor>>& inputs) {
    return error_of(code, [&] { predictor.predict(inputs); });
  };
  const auto wrong = ErrorCode::kInvalidArgument;
  EXPECT_THAT(refused(wrong, {}), HasSubstr("no input is given"));
  EXPECT_THAT(refused(wrong, {{network_.x, words(2)}}),
              HasSubstr("input 'x' is float32 (8,3), the tensor is int32 (2)"));
  EXPECT_THAT(refused(wrong, {{network_.x, Tensor()}}), HasSubstr("the tensor is empty"));
  EXPECT_THAT(refused(wrong, {{network_.x, Tensor(DType::kFloat32, {0, 3})}}),
              HasSubstr("the tensor is float32 (0,3)"));
  EXPECT_THAT(refused(wrong, {{network_.x, numbers(2)}, {network_.ids, words(3)}}),
              HasSubstr("input 'x' has 2 rows, and 'ids' 3"));
  EXPECT_THAT(refused(ErrorCode::kFailedPrecondition, {{network_.x, numbers(2)}}),
              HasSubstr("'ids'"));
  expect_first_rows(predict(predictor, 2), predict(predictor, 9));  // it goes on
}

// One function builds the graph that trains, for a fixed batch, and the graph that serves.
TEST_F(PredictorTest, OpenDimensionsTakeTheSizesOfTheInputs) {
  const Tensor expected = trained();
  Graph open;
  const Network network = build(open, open.open("batch"));
  const Predictor predictor(open, {network.logits}, run_.out, options_);
  EXPECT_EQ(predictor.batch(), 0);
  for (const std::int64_t rows : {kRows, std::int64_t{1}, std::int64_t{3}, kRows}) {
    const Tensor logits =
        predictor.predict({{network.x, numbers(rows)}, {network.ids, words(rows)}})[0];
    ASSERT_EQ(logits.shape(), (Shape{rows, 4}));
    for (std::int64_t i = 0; i < 4 * rows; ++i) {
      EXPECT_NEAR(logits.data<float>()[std::size_t(i)], expected.data<float>()[std::size_t(i)],
                  1e-6f)
          << rows << " rows";
    }
  }
  const auto refused = [&](ErrorCode code, const Tensor& x, std::optional<Tensor> ids) {
    return error_of(code, [&] {
      std::vector<std::pair<Value, Tensor>> inputs = {{network.x, x}};
      if (ids) inputs.emplace_back(network.ids, *ids);
      predictor.predict(inputs);
    });
  };
  EXPECT_THAT(refused(ErrorCode::kInvalidArgument, numbers(3), words(2)),
              AllOf(HasSubstr("'ids' is int32 (batch), the tensor is int32 (2)"),
                    HasSubstr("batch is 3 in another input")));
  EXPECT_THAT(refused(ErrorCode::kInvalidArgument, Tensor(DType::kFloat32, {0, 3}), words(1)),
              HasSubstr("'x' is float32 (batch,3), the tensor is float32 (0,3): batch is 0"));
  EXPECT_THAT(refused(ErrorCode::kInvalidArgument, Tensor(DType::kFloat32, {2, 5}), words(2)),
              HasSubstr("(2,5)"));
  EXPECT_THAT(refused(ErrorCode::kFailedPrecondition, numbers(2), {}), HasSubstr("'ids'"));
}

// The graph has two open dimensions, their product, a mean over one of them, and ops that differ
// between training and inference.
TEST_F(PredictorTest, EachOpenDimensionHasASizeOfItsOwn) {
  const auto made = [](Graph& graph, std::int64_t batch, std::int64_t time) {
    const Value x = graph.input("x", {batch, time, 3});
    const Value rows = dense(reshape(x, {batch * time, 3}), 4, "layer");
    const Value images = reshape(dropout(rows, 0.5), {batch * time, 4, 1, 1});
    const Value normed = batch_norm(images, "norm");
    return std::pair(x, reduce_mean(reshape(normed, {batch, time, 4}), {1}));
  };
  Graph graph;
  const auto [x, y] = made(graph, 2, 5);
  Session session(minimize(reduce_mean(square(y)), Sgd{0.1f}), cluster_, run_);
  while (session.run([&](Feed& feed) { feed.normal(x); })) {
  }
  Graph open;
  const auto [any, means] = made(open, open.open("batch"), open.open("time"));
  EXPECT_EQ(means.type().str(), "float32 (batch,4)");
  const Predictor predictor(open, {means}, run_.out, options_);
  Tensor input(DType::kFloat32, {2, 5, 3});
  for (std::size_t i = 0; i < 30; ++i) input.data<float>()[i] = 0.1f * float(i) - 1;
  const Tensor expected = session.evaluate(y, [&](Feed& feed) { feed.set(x, input); });
  const Tensor computed = predictor.predict({{any, input}})[0];
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(computed.data<float>()[i], expected.data<float>()[i], 1e-5f) << i;
  }
  // The loop has more sizes than plans that are kept. The mean over equal values is that value.
  for (std::int64_t time = 1; time < 25; ++time) {
    const Tensor same(DType::kFloat32, {1, time, 3});
    const Tensor once(DType::kFloat32, {1, 1, 3});
    const Tensor mean = predictor.predict({{any, same}})[0];
    const Tensor one = predictor.predict({{any, once}})[0];
    ASSERT_EQ(mean.shape(), (Shape{1, 4}));
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(mean.data<float>()[i], one.data<float>()[i], 1e-5f);
    }
  }
}

// An open input that the outputs do not need says no size and takes no memory. A node that is not
// defined for the sizes, and that no output needs, does no harm.
TEST_F(PredictorTest, WhatTheOutputsDoNotNeedIsLeftOut) {
  trained();
  Graph graph;
  const Network network = build(graph, graph.open("batch"));
  const Value later = graph.input("later", {graph.open("batch"), graph.open("much"), 4096});
  reduce_sum(slice(network.x, {0, 0}, {5, 3}));
  const Predictor predictor(graph, {network.logits}, run_.out, options_);
  const Tensor logits = predictor.predict({{network.x, numbers(2)}, {network.ids, words(2)}})[0];
  EXPECT_EQ(logits.shape(), (Shape{2, 4}));
  const Tensor unused(DType::kFloat32, {2, 1, 4096});
  predictor.predict({{network.x, numbers(2)}, {network.ids, words(2)}, {later, unused}});
}

TEST_F(PredictorTest, AnInputOfAnotherGraphIsRefused) {
  trained();
  for (const bool is_open : {false, true}) {
    Graph graph, another;
    const auto made = [&](Graph& of) { return build(of, is_open ? of.open("batch") : kRows); };
    const Network network = made(graph), other = made(another);
    const Predictor predictor(graph, {network.logits}, run_.out, options_);
    EXPECT_THAT(error_of(ErrorCode::kInvalidArgument,
                         [&] {
                           predictor.predict({{other.x, numbers(3)}, {network.ids, words(3)}});
                         }),
                HasSubstr("'x' is of another graph"));
  }
}

TEST_F(PredictorTest, VariablesNeedNumbersAndATrainingUsualSizes) {
  Graph open;
  const Network network = build(open, open.open("batch"));
  EXPECT_THAT(error_of(ErrorCode::kFailedPrecondition,
                       [&] { Session(minimize(network.loss, Sgd{}), cluster_, run_); }),
              AllOf(HasSubstr("'x' is float32 (batch,3)"), HasSubstr("open(\"batch\", 64)")));
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument,
                       [&] {
                         open.variable("w", {open.open("batch"), 2});
                       }),
              HasSubstr("'w' cannot have the open dimensions of (batch,2)"));
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument,
                       [&] {
                         matmul(network.x, open.input("y", {4, 2}));
                       }),
              HasSubstr("(batch,3)"));
}

}  // namespace
}  // namespace paceline
