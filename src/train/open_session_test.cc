// Sessions over graphs with open dimensions: each batch has sizes of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/philox.h"
#include "base/temporary_folder.h"
#include "base/testing/error_of.h"
#include "net/held_ports.h"
#include "paceline/evaluator.h"
#include "paceline/hooks.h"
#include "paceline/input.h"
#include "paceline/ops.h"
#include "paceline/session.h"
#include "params/job_control.h"
#include "run/report/report.h"
#include "summary/event_reader.h"
#include "train/session_inside.h"
#include "train/testing/quiet.h"
#include "train/testing/served.h"
#include "train/testing/towers.h"

namespace paceline::open_session {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Sizes = std::vector<std::int64_t>;

constexpr std::int64_t kWords = 40;

/// A network over numbers and words of `batch` examples.
struct Net {
  Net(std::int64_t batch, Graph& graph) {
    x = graph.input("x", {batch, 6});
    ids = graph.input("ids", {batch}, DType::kInt32);
    const Value table = graph.variable("table", {kWords, 6}, Initializer::uniform(-1, 1));
    const Value h = relu(dense(add(x, embedding_lookup(table, ids)), 16, "layer1"));
    y = graph.named("y", dense(h, 3, "layer2"));
    losses = softmax_cross_entropy(y, arg_max(slice(x, {0, 0}, {batch, 3})));
    loss = reduce_mean(losses);
  }
  Value x, ids, y, losses, loss;
};

// Fills a batch with the examples from number `first` on. Example n is the same in every batch.
void fill_examples(Feed& feed, const Net& net, std::int64_t first, std::int64_t count) {
  const auto x = feed.data<float>(net.x, {count, 6});
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = to_unit_float(philox(1, std::uint64_t(first) * 6 + i, 0)[0]) - 0.5f;
  }
  const auto ids = feed.data<std::int32_t>(net.ids, {count});
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = std::int32_t(philox(2, std::uint64_t(first) + i, 0)[0] % kWords);
  }
}

/// Returns a feed whose batch number n has `sizes[n]` examples, and which stops after the last
/// size.
std::function<void(Feed&)> batches(const Net& net, const Sizes& sizes) {
  return [net, sizes](Feed& feed) {
    const auto step = std::size_t(feed.step());
    if (step >= sizes.size()) return feed.stop();
    const std::int64_t first =
        std::accumulate(sizes.begin(), sizes.begin() + std::ptrdiff_t(step), std::int64_t{0});
    fill_examples(feed, net, first, sizes[step]);
  };
}

struct Outcome {
  std::vector<double> losses;
  std::vector<std::vector<float>> variables;
};

void note_variables(Session& session, Outcome& outcome) {
  SessionInside(session).see_variables([&](const std::string&, const Tensor& value) {
    const auto values = value.data<float>();
    outcome.variables.emplace_back(values.begin(), values.end());
  });
}

Outcome train(const Cluster& cluster, const Sizes& sizes, const Rule& rule = Adam{0.01f},
              float clip_norm = 0, RunOptions run = quiet()) {
  Graph graph;
  const Net net(graph.open("batch", 8), graph);
  Session session(minimize(net.loss, rule, {.clip_norm = clip_norm}), cluster, run);
  Outcome outcome;
  struct Losses : Hook {
    explicit Losses(std::vector<double>& to) : losses(to) {}
    bool after_step(Session&, const StepResult& result) override {
      losses.push_back(result.loss);
      return true;
    }
    std::vector<double>& losses;
  };
  session.add(Losses(outcome.losses));
  session.run(batches(net, sizes));
  note_variables(session, outcome);
  return outcome;
}

void expect_near(const Outcome& got, const Outcome& wanted, double relative = 1e-5) {
  ASSERT_EQ(got.losses.size(), wanted.losses.size());
  for (std::size_t i = 0; i < wanted.losses.size(); ++i) {
    EXPECT_NEAR(got.losses[i], wanted.losses[i], relative * wanted.losses[i]) << i;
  }
  for (std::size_t v = 0; v < wanted.variables.size(); ++v) {
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < wanted.variables[v].size(); ++i) {
      difference += std::pow(double(got.variables[v][i]) - double(wanted.variables[v][i]), 2);
      norm += std::pow(double(wanted.variables[v][i]), 2);
    }
    EXPECT_LE(std::sqrt(difference / norm), 1e-4) << v;
  }
}

// There are more sizes than plans that are kept. Some occur twice; some are larger and some smaller
// than the usual size.
TEST(OpenSession, EachStepIsThatOfAGraphOfItsSizes) {
  Sizes sizes = {8, 3, 8, 1, 64};
  for (std::int64_t size = 2; size < 24; ++size) sizes.push_back(size);
  sizes.insert(sizes.end(), {3, 8, 64, 2});
  const Outcome open = train({}, sizes, Sgd{0.5f});
  ASSERT_EQ(open.losses.size(), sizes.size());
  std::vector<Tensor> values;
  std::int64_t first = 0;
  for (std::size_t step = 0; step < sizes.size(); ++step) {
    Graph graph;
    const Net net(sizes[step], graph);
    Session session(minimize(net.loss, Sgd{0.5f}), {}, quiet());
    const std::vector<std::string> names = session.variables().names();
    for (std::size_t v = 0; v < values.size(); ++v) session.variables().set(names[v], values[v]);
    const auto made =
        session.step([&](Feed& feed) { fill_examples(feed, net, first, sizes[step]); });
    EXPECT_EQ(open.losses[step], made->loss) << step;
    values.clear();
    for (const std::string& name : names) values.push_back(session.variables().get(name));
    first += sizes[step];
  }
  for (std::size_t v = 0; v < values.size(); ++v) {
    const auto last = values[v].data<float>();
    EXPECT_EQ(open.variables[v], (std::vector<float>(last.begin(), last.end()))) << v;
  }
}

TEST(OpenSession, TowersOfUnequalBatchesTrainAsOneDevice) {
  for (const float clip_norm : {0.0f, 0.05f}) {
    const Outcome one = train(with_towers(1), {8, 9, 5, 16, 7}, Adam{0.01f}, clip_norm);
    const Outcome two = train(with_towers(2), {5, 3, 1, 8, 3, 2, 12, 4, 7}, Adam{0.01f}, clip_norm);
    expect_near(two, one);  // the last step has a tower without a batch
  }
}

// After a run whose feed has stopped, the next step uses all batches that the feed gives.
TEST(OpenSession, TowersOfAClosedGraphCountAlikeAfterARunHasEnded) {
  const auto last_loss = [](const Sizes& runs) {
    Graph graph;
    const Net net(4, graph);
    Session session(minimize(net.loss, Adam{0.01f}), with_towers(2), quiet());
    std::int64_t batch = 0;
    for (const std::int64_t batches : runs) {
      const std::int64_t end = batch + batches;
      session.run([&](Feed& feed) {
        if (batch == end) return feed.stop();
        fill_examples(feed, net, 4 * batch++, 4);
      });
      batch = end / 2 * 2;  // a batch without one for the other tower is dropped
    }
    return session.last_step().loss;
  };
  EXPECT_EQ(last_loss({4, 4}), last_loss({8}));
  EXPECT_EQ(last_loss({5, 4}), last_loss({8}));
}

TEST(OpenSession, ARunBeginsAnewAfterTheLastTowersHadNoBatch) {
  Graph graph;
  const Net net(graph.open("batch", 4), graph);
  Session session(minimize(net.loss, Sgd{0.1f}), with_towers(2), quiet(), {.watch = {net.loss}});
  int batch = 0;
  const auto feed = [&](Feed& to) {
    if (batch == 3) return to.stop();
    fill_examples(to, net, 4 * batch++, 4);
  };
  for (int step = 1; step <= 2; ++step) EXPECT_EQ(session.step(feed)->step, step);
  EXPECT_NEAR(double(session.value(net.loss).item<float>()), session.last_step().loss, 1e-6);
  batch = 0;
  EXPECT_TRUE(session.run(feed));
  EXPECT_EQ(session.last_step().step, 4);
}

// Trains a layer of 512 × 512 by batches of these sizes: in one session with an open dimension, or
// in one session for each size.
std::vector<Tensor> train_layer(bool is_open, const Sizes& sizes) {
  std::vector<Tensor> weights;
  for (std::size_t first = 0; first < (is_open ? 1 : sizes.size()); ++first) {
    Graph graph;
    const std::int64_t batch = is_open ? graph.open("batch", 128) : sizes[first];
    const Value x = graph.input("x", {batch, 512});
    Session session(minimize(reduce_mean(square(dense(x, 512, "layer"))), Sgd{0.5f}), {}, quiet());
    const std::vector<std::string> names = session.variables().names();
    for (std::size_t v = 0; v < weights.size(); ++v) session.variables().set(names[v], weights[v]);
    for (std::size_t i = first; i < (is_open ? sizes.size() : first + 1); ++i) {
      session.step([&](Feed& feed) {
        const auto to = feed.data<float>(x, {sizes[i], 512});
        for (std::size_t k = 0; k < to.size(); ++k) to[k] = float((k * 7 + i) % 13) / 13;
      });
    }
    weights.clear();
    for (const std::string& name : names) weights.push_back(session.variables().get(name));
  }
  return weights;
}

// Except for large batches, the kernel of a weight's gradient gives rows to the rule as it makes
// them.
TEST(OpenSession, LargeWeightsAreTrainedByBatchesOfAllSizes) {
  const Sizes sizes = {128, 300, 64, 300, 1, 128};
  const std::vector<Tensor> open = train_layer(true, sizes), closed = train_layer(false, sizes);
  for (std::size_t v = 0; v < closed.size(); ++v) {
    EXPECT_TRUE(std::ranges::equal(open[v].data<float>(), closed[v].data<float>())) << v;
  }
}

TEST(OpenSession, AccumulatedBatchesCountByTheirExamples) {
  Cluster cluster;
  const Outcome one = train(cluster, {8, 9, 5});
  cluster.train.accumulate = 2;
  const Outcome two = train(cluster, {5, 3, 1, 8, 3, 2});
  ASSERT_EQ(two.losses.size(), 6u);
  expect_near(
      {{two.losses[0] * 5 / 8 + two.losses[1] * 3 / 8, two.losses[2] / 9 + two.losses[3] * 8 / 9,
        two.losses[4] * 3 / 5 + two.losses[5] * 2 / 5},
       two.variables},
      one);
}

/// Trains as one of two workers, whose parts of each batch have these sizes.
Outcome train_part(const Cluster& cluster, const Sizes (&parts)[2]) {
  const int worker = cluster.task.index;
  Graph graph;
  const Net net(graph.open("batch", 8), graph);
  Session session(minimize(net.loss, Adam{0.01f}), cluster, quiet());
  Outcome outcome;
  std::int64_t first = 0;
  for (std::size_t step = 0; step < parts[0].size(); ++step) {
    const std::int64_t own = first + (worker == 0 ? 0 : parts[0][step]);
    const auto made =
        session.step([&](Feed& feed) { fill_examples(feed, net, own, parts[worker][step]); });
    outcome.losses.push_back(made->loss);
    first += parts[0][step] + parts[1][step];
  }
  session.finish_training();
  note_variables(session, outcome);
  return outcome;
}

// Rounds of two workers with unequal parts of each batch.
TEST(OpenSession, WorkersCountByTheirExamples) {
  const Sizes parts[] = {{5, 1, 3, 9}, {3, 8, 2, 4}};
  for (const char* const strategy : {"sync", "allreduce"}) {
    SCOPED_TRACE(strategy);
    const bool has_ps = strategy == std::string("sync");
    const HeldPorts ports(2);
    const Served served(ports.addresses());
    std::vector<std::future<Outcome>> workers;
    for (int worker = 0; worker < 2; ++worker) {
      Cluster cluster = served.cluster(worker);
      if (!has_ps) cluster.spec.ps.clear();
      cluster.strategy.name = strategy;
      workers.push_back(
          std::async(std::launch::async, [cluster, &parts] { return train_part(cluster, parts); }));
    }
    Outcome both = workers[0].get();
    const Outcome other = workers[1].get();
    Sizes whole;
    for (std::size_t i = 0; i < 4; ++i) {
      whole.push_back(parts[0][i] + parts[1][i]);
      both.losses[i] =
          (both.losses[i] * double(parts[0][i]) + other.losses[i] * double(parts[1][i])) /
          double(whole[i]);
    }
    expect_near(both, train({}, whole));
  }
}

TEST(OpenSession, EvaluatesBatchesOfAnySizeAndWatchesValues) {
  Graph graph;
  const Net net(graph.open("batch", 8), graph);
  Session session(minimize(net.loss, Sgd{0.1f}), {}, quiet(), {.watch = {net.y}});
  EXPECT_EQ(SessionInside(session).options().examples_per_step, 8);
  const auto all = [&](std::int64_t first, std::int64_t count) {
    return [&, first, count](Feed& feed) { fill_examples(feed, net, first, count); };
  };
  session.step(all(0, 5));
  EXPECT_EQ(session.value(net.y).shape(), (Shape{5, 3}));
  session.step(all(0, 9));
  EXPECT_EQ(session.value(net.y).shape(), (Shape{9, 3}));
  const Tensor whole = session.evaluate(net.losses, all(0, 30));
  Evaluator evaluator(session);
  evaluator.take_values();
  for (std::int64_t first = 0; first < 30;) {
    for (std::int64_t count = 1; first + count <= 30 && count < 5; first += count, ++count) {
      const Tensor part = session.evaluate("softmax_cross_entropy", all(first, count));
      ASSERT_EQ(part.shape(), (Shape{count}));
      const Tensor same = evaluator.evaluate(net.losses, all(first, count));
      for (std::size_t i = 0; i < std::size_t(count); ++i) {
        EXPECT_NEAR(part.data<float>()[i], whole.data<float>()[std::size_t(first) + i], 1e-5f);
        EXPECT_EQ(part.data<float>()[i], same.data<float>()[i]);
      }
    }
  }
  // Evaluates a value that the graph gets only now, and fetches one from the store.
  const Value doubled = scale(net.losses, 2);
  const Tensor twice = session.evaluate(doubled, all(0, 3));
  EXPECT_FLOAT_EQ(twice.data<float>()[2], 2 * whole.data<float>()[2]);
  EXPECT_EQ(session.fetch(graph, {&net.losses, 1}, all(0, 4))[0].shape, (Shape{4}));
}

TEST(OpenSession, FetchesCountTheirExamples) {
  const TemporaryFolder folder;
  RunOptions run = quiet();
  run.report = folder.path("report.json");
  {
    Graph graph;
    const Net net(graph.open("batch", 8), graph);
    Session session(graph, {}, run);
    const auto feed = [&](Feed& f) { fill_examples(f, net, 0, 3); };
    for (int i = 0; i < kUntimedSteps + 20; ++i) session.fetch(graph, {&net.losses, 1}, feed);
  }
  const TaskReport task = read_report(run.report).tasks.at(0);
  EXPECT_NEAR(*task.examples_per_s, 3 * *task.steps_per_s, 1e-3 * *task.examples_per_s);
}

TEST(OpenSession, SummariesCountTheExamplesOfEachBatch) {
  const TemporaryFolder folder;
  {
    Graph graph;
    const Net net(graph.open("batch", 8), graph);
    Session session(minimize(net.loss, Sgd{0.1f}), {}, quiet());
    session.add(Summaries(folder.path(), 4));
    session.run(batches(net, {3, 5, 4, 4}));
  }
  EventReader reader(std::filesystem::directory_iterator(folder.path("worker:0"))->path());
  std::map<std::string, float> numbers;
  while (const std::optional<SummaryEvent> event = reader.next()) {
    for (const SummaryValue& value : event->values) {
      if (value.tag.starts_with("speed/")) numbers[value.tag] = std::get<float>(value.value);
    }
  }
  const float steps = numbers["speed/steps_per_s"];
  EXPECT_GT(steps, 0);
  EXPECT_NEAR(numbers["speed/examples_per_s"], 4 * steps, 1e-3f * steps)
      << "a batch has 4 on average";
}

TEST(OpenSession, ArrayBatchesGiveNoBatchByThemselvesToAnEvaluation) {
  Graph graph;
  const Value x = graph.input("x", {graph.open("batch", 4), 2});
  const Value sum = reduce_sum(x);
  Session session(graph, {}, quiet());
  Tensor rows(DType::kFloat32, {8, 2});
  std::ranges::fill(rows.data<float>(), 1.0f);
  ArrayBatches data({{x, rows}});
  for (const auto& by :
       {std::function<void()>([&] { session.evaluate(sum, data); }), std::function<void()>([&] {
          session.fetch(graph, {&sum, 1}, data);
        })}) {
    EXPECT_THAT(error_of(ErrorCode::kFailedPrecondition, by), HasSubstr("fill()"));
  }
  EXPECT_EQ(session.evaluate(sum, [&](Feed& f) { data.fill(f, 1); }).item<float>(), 8);
}

// The last batch is smaller, and counts for less.
TEST(OpenSession, MeansOverADataSetCountEachExampleOnce) {
  Graph graph;
  const Value x = graph.input("x", {graph.open("batch", 4), 1});
  const Value wide = graph.input("wide", {graph.open("batch", 4)}, DType::kFloat64);
  Tensor rows(DType::kFloat32, {10, 1}), doubles(DType::kFloat64, {10});
  std::iota(rows.data<float>().begin(), rows.data<float>().end(), 0.0f);
  std::iota(doubles.data<double>().begin(), doubles.data<double>().end(), 1.0);
  ArrayBatches data({{x, rows}, {wide, doubles}}, {.last = LastBatch::kShort});
  const std::vector<Value> values = {reduce_mean(x), reduce_mean(wide)};
  Session session(graph, {}, quiet());
  EXPECT_THAT(means_over(session, values, data), ElementsAre(4.5, 5.5));
  Evaluator evaluator(session);
  evaluator.take_values();
  EXPECT_THAT(means_over(evaluator, values, data), ElementsAre(4.5, 5.5));
}

TEST(OpenSession, SaysWhichSizeIsMissingZeroOrDiffers) {
  Graph graph;
  const Net net(graph.open("batch", 8), graph);
  Session session(minimize(net.loss, Sgd{0.1f}), {}, quiet());
  const auto error_in = [&](ErrorCode code, const std::function<void(Feed&)>& feed) {
    return error_of(code, [&] { session.evaluate(net.loss, feed); });
  };
  const ErrorCode invalid = ErrorCode::kInvalidArgument;
  EXPECT_THAT(error_in(invalid,
                       [&](Feed& feed) {
                         feed.view(net.x, {0, 6});
                       }),
              AllOf(HasSubstr("'x' is float32 (batch,6)"), HasSubstr("batch is 0")));
  EXPECT_THAT(error_in(invalid,
                       [&](Feed& feed) {
                         feed.view(net.x, {4, 5});
                       }),
              AllOf(HasSubstr("(batch,6)"), HasSubstr("(4,5)")));
  EXPECT_THAT(error_in(invalid, [&](Feed& feed) { feed.view(net.x, {4}); }), HasSubstr("(4)"));
  EXPECT_THAT(error_in(invalid,
                       [&](Feed& feed) {
                         feed.view(net.x, {4, 6});
                         feed.view(net.ids, {5});
                       }),
              AllOf(HasSubstr("'ids' is int32 (batch)"), HasSubstr("batch is 4")));
  EXPECT_THAT(error_in(ErrorCode::kFailedPrecondition,
                       [&](Feed& feed) {
                         feed.view(net.x, {4, 6});
                       }),
              HasSubstr("'ids' was not fed"));
  EXPECT_THAT(error_of(invalid, [&] { graph.open("batch", 9); }),
              HasSubstr("'batch' is 9, and was 8"));
  EXPECT_THAT(error_of(invalid, [&] { graph.open("batch", -1); }), HasSubstr("-1"));
  Graph without;
  const Net unknown(without.open("batch"), without);
  session.share(without);
  EXPECT_THAT(
      error_of(ErrorCode::kFailedPrecondition,
               [&] { session.evaluate(unknown.loss, [&](Feed& feed) { feed.view(unknown.x); }); }),
      HasSubstr("nothing says the size of batch"));
  session.evaluate(unknown.loss, [&](Feed& feed) { fill_examples(feed, unknown, 0, 3); });
}

// A mean over a batch may divide a sum by the open dimension, as by the number of a fixed batch.
TEST(OpenSession, AFactorMayBeAnOpenDimension) {
  Graph graph;
  const auto batch = graph.open("batch", 4), time = graph.open("time", 2);
  const Value x = graph.input("x", {batch, time});
  const Value sum = reduce_sum(x);
  const Value all[] = {scale(sum, 1.0 / double(batch * time)), sum / double(batch),
                       0.5 / double(time) * sum, sum * double(2 * batch), sum * 3};
  Session session(graph, {}, quiet());
  for (const std::int64_t size : {4, 5, 1}) {
    const auto values = session.evaluate(graph, all, [&](Feed& feed) {
      const auto ones = feed.data<float>(x, {size, 3});
      std::fill(ones.begin(), ones.end(), 1.0f);
    });
    const double n = double(size);
    const double wanted[] = {1, 3, 0.5 * n, 6 * n * n, 9 * n};
    for (std::size_t i = 0; i < 5; ++i) EXPECT_FLOAT_EQ(values[i].item<float>(), float(wanted[i]));
  }
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { sum + double(batch); }),
              HasSubstr("stands for the open dimension batch"));
}

// Without a shape, a feed fills a batch of the usual size, or of the size that it gave to another
// input before.
TEST(OpenSession, InputsHaveTheUsualSizeUnlessTheFeedSaysAnother) {
  Graph graph;
  const auto batch = graph.open("batch", 6), time = graph.open("time", 4);
  const Value x = graph.input("x", {batch, time, 2}), mask = graph.input("mask", {time});
  const Value w = graph.variable("w", {2, 1}, Initializer::constant(1));
  const Value rows = reshape(matmul(reshape(x, {batch * time, 2}), w), {batch, time});
  const Value loss = reduce_mean(square(mul(rows, mask)));
  Session session(minimize(loss, Sgd{0.01f}), {}, quiet(),
                  {.examples_per_step = batch * time, .unit = "words"});
  EXPECT_EQ(SessionInside(session).options().examples_per_step, 24);
  std::vector<Shape> shapes;
  const auto step = [&](const std::function<void(Feed&)>& mask_of) {
    session.step([&](Feed& feed) {
      mask_of(feed);
      shapes.push_back(feed.view(x).shape);
      feed.normal(x);
    });
  };
  const auto ones = [&](std::int64_t size) {
    return Tensor::of<float>({size}, std::vector<float>(std::size_t(size), 1.0f));
  };
  const Tensor four = ones(4);
  step([&](Feed& feed) { feed.set(mask, ones(9)).keep(mask); });
  step([&](Feed& feed) { feed.set(mask, ones(3)); });
  step([&](Feed& feed) { feed.set_once(mask, four); });
  step([&](Feed& feed) { feed.set_once(mask, four); });
  EXPECT_THAT(shapes, ElementsAre(Shape{6, 9, 2}, Shape{6, 3, 2}, Shape{6, 4, 2}, Shape{6, 4, 2}));
  EXPECT_EQ(session.last_step().step, 4);
}

// An input that one step keeps has its values in the next step, whatever plan makes that step.
TEST(OpenSession, KeepsInputsFromSizeToSize) {
  for (const int towers : {1, 2}) {
    Graph graph;
    const Value x = graph.input("x", {graph.open("batch", 2), 3}), mask = graph.input("mask", {3});
    const Value w = graph.variable("w", {3}, Initializer::constant(1));
    const Value loss = reduce_mean(mul(mul(x, mask), w));
    Session session(minimize(loss, Sgd{0.0f}), with_towers(towers), quiet());
    std::vector<double> losses;
    for (std::int64_t size = 1; size < 5; ++size) {
      const auto made = session.step([&](Feed& feed) {
        const auto values = feed.data<float>(x, {size, 3});
        std::fill(values.begin(), values.end(), 1.0f);
        if (size == 1 && feed.step() == 0) {
          feed.set(mask, Tensor::of<float>({3}, {1, 2, 6})).keep(mask);
        }
      });
      losses.push_back(made->loss);
    }
    EXPECT_THAT(losses, ElementsAre(3, 3, 3, 3));
  }
}

void fill_ones(Feed& feed, Value input, const Shape& shape) {
  std::ranges::fill(feed.data<float>(input, shape), 1.0f);
}

TEST(OpenSession, WhatIsNoLongerKeptIsMissedInEachSize) {
  Graph graph;
  const Value x = graph.input("x", {graph.open("batch", 2), 3}), mask = graph.input("mask", {3});
  const Value loss = reduce_mean(mul(mul(x, mask), graph.variable("w", {3})));
  Session session(minimize(loss, Sgd{0.0f}), {}, quiet());
  const Tensor ones = Tensor::of<float>({3}, {1, 1, 1});
  const auto step = [&](std::int64_t size, const std::function<void(Feed&)>& mask_of) {
    session.step([&](Feed& feed) {
      fill_ones(feed, x, {size, 3});
      mask_of(feed);
    });
  };
  step(8, [&](Feed& feed) { feed.set(mask, ones).keep(mask); });
  step(4, [&](Feed&) {});
  step(4, [&](Feed& feed) { feed.set(mask, ones); });
  EXPECT_THAT(error_of(ErrorCode::kFailedPrecondition, [&] { step(8, [&](Feed&) {}); }),
              HasSubstr("'mask' was not fed"));
}

TEST(OpenSession, AnInputThatIsSetOnceStaysInEachSize) {
  for (const int towers : {1, 2}) {
    Graph graph;
    const Value x = graph.input("x", {graph.open("batch", 2), 3}), mask = graph.input("mask", {3});
    const Value w = graph.variable("w", {3}, Initializer::constant(1));
    const Value loss = reduce_mean(mul(mul(x, mask), w));
    Session session(minimize(loss, Sgd{0.0f}), with_towers(towers), quiet());
    const Tensor given = Tensor::of<float>({3}, {1, 2, 6});
    for (const std::int64_t size : {2, 3, 2, 5}) {
      const auto made = session.step([&](Feed& feed) {
        fill_ones(feed, x, {size, 3});
        if (feed.step() < towers) feed.set_once(mask, given);
      });
      EXPECT_DOUBLE_EQ(made->loss, 3) << size << " of " << towers;
    }
  }
}

// An evaluation that does not read the labels ignores labels that an earlier one keeps, even of
// another batch size.
TEST(OpenSession, WhatAnEvaluationKeepsMayBeOfOtherSizes) {
  Graph graph;
  const auto batch = graph.open("batch");
  const Value x = graph.input("x", {batch, 1}), y = graph.input("y", {batch, 1});
  const Value loss = reduce_mean(square(sub(x, y))), twice = scale(x, 2);
  Session session(graph, {}, quiet());
  const Tensor ones = Tensor::of<float>({3, 1}, {1, 1, 1}), two = Tensor::of<float>({1, 1}, {2});
  session.evaluate(loss, [&](Feed& feed) { feed.set(x, ones).set(y, ones).keep(y); });
  EXPECT_EQ(session.evaluate(twice, [&](Feed& feed) { feed.set(x, two); }).item<float>(), 4);
  EXPECT_THAT(error_of(ErrorCode::kFailedPrecondition,
                       [&] { session.evaluate(loss, [&](Feed& feed) { feed.set(x, two); }); }),
              HasSubstr("'y' was not fed"));
}

// A value that is not defined for some size is an error where it is asked for, and nowhere else.
TEST(OpenSession, AValueThatIsNotDefinedForASizeIsRefusedForThatOne) {
  Graph graph;
  const Value x = graph.input("x", {graph.open("batch", 8), 2});
  const Value sum = reduce_sum(x);
  Session session(graph, {}, quiet());
  const auto ones = [&](std::int64_t size) {
    return [&, size](Feed& feed) { fill_ones(feed, x, {size, 2}); };
  };
  session.evaluate(sum, ones(3));
  session.evaluate(sum, ones(8));
  const Value five = reduce_sum(slice(x, {0, 0}, {5, 2}));
  EXPECT_EQ(session.evaluate(five, ones(8)).item<float>(), 10);
  EXPECT_EQ(session.evaluate(sum, ones(3)).item<float>(), 6);
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { session.evaluate(five, ones(3)); }),
              AllOf(HasSubstr("[slice]"), HasSubstr("batch = 3")));
}

// Local variables of fixed sizes go on; those with open dimensions begin at zero whenever the sizes
// change.
TEST(OpenSession, LocalVariablesOfFixedSizesAreTheSameInEachSize) {
  Graph graph;
  const auto batch = graph.open("batch", 2);
  const Value x = graph.input("x", {batch});
  const Value steps = graph.local("steps", {1}), state = graph.local("state", {batch});
  const Value count = add(steps, graph.constant(Tensor::of<float>({1}, {1})));
  const Value sum = add(state, x);
  graph.assign(steps, count);
  graph.assign(state, sum);
  const Value w = graph.variable("w", {1});
  const Value loss = add(reduce_sum(mul(w, count)), scale(reduce_sum(sum), 0));
  Session session(minimize(loss, Sgd{0.0f}), {}, quiet(), {.watch = {count, sum}});
  const auto step = [&](std::int64_t size) {
    session.step([&](Feed& feed) {
      const auto values = feed.data<float>(x, {size});
      std::fill(values.begin(), values.end(), 1.0f);
    });
    const float counted = session.value(count).data<float>()[0];
    return std::pair(counted, session.value(sum).data<float>()[0]);
  };
  EXPECT_EQ(step(2), std::pair(1.0f, 1.0f));
  EXPECT_EQ(step(2), std::pair(2.0f, 2.0f));
  EXPECT_EQ(step(3), std::pair(3.0f, 1.0f));
  EXPECT_EQ(step(2), std::pair(4.0f, 1.0f));
  session.reset_locals(graph);
  EXPECT_EQ(step(2), std::pair(1.0f, 1.0f));
}

TEST(OpenSession, ArraysEndWithAShortBatch) {
  Graph graph;
  const auto batch = graph.open("batch", 4);
  const Value x = graph.input("x", {batch, 2}), weights = graph.input("weights", {batch});
  const Value loss =
      reduce_mean(mul(matmul(x, graph.variable("w", {2, 1})), reshape(weights, {batch, 1})));
  Session session(minimize(loss, Sgd{0.1f}), {}, quiet(), {.watch = {x}});
  const Tensor all(DType::kFloat32, {10, 2});
  ArrayBatches data({{x, all}}, {.last = LastBatch::kShort, .weights = weights});
  EXPECT_EQ(data.size(), 3);
  std::vector<std::int64_t> rows;
  struct Rows : Hook {
    Rows(Value of, std::vector<std::int64_t>& rows) : value(of), to(rows) {}
    bool after_step(Session& session, const StepResult&) override {
      to.push_back(session.value(value).shape()[0]);
      return true;
    }
    Value value;
    std::vector<std::int64_t>& to;
  };
  session.add(Rows(x, rows));
  session.run(prefetch(data));
  EXPECT_THAT(rows, ElementsAre(4, 4, 2));
  EXPECT_EQ(ArrayBatches({{x, all}}, {.last = LastBatch::kShort, .batch = 3}).size(), 4);
  Graph fixed;
  const Value four = fixed.input("x", {4, 2});
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument,
                       [&] {
                         ArrayBatches({{four, all}}, {.last = LastBatch::kShort});
                       }),
              HasSubstr("dimension 0 must be open"));
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument,
                       [&] {
                         ArrayBatches({{four, all}}, {.batch = 3});
                       }),
              HasSubstr("a batch of 3"));
}

TEST(OpenSession, ABatchOfMoreRowsThanTheStoreHasRoomForIsNamed) {
  Graph graph;
  const Net net(graph.open("batch", 2), graph);
  Session session(minimize(net.loss, Sgd{0.1f}), {}, quiet());
  session.step([&](Feed& feed) { fill_examples(feed, net, 0, 16); });
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument,
                       [&] { session.step([&](Feed& feed) { fill_examples(feed, net, 0, 17); }); }),
              AllOf(HasSubstr("'table'"), HasSubstr("17"), HasSubstr("8 times")));
}

}  // namespace
}  // namespace paceline::open_session
