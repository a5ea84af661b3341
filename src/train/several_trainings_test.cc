// Several trainings in one session: two losses, two rules, and steps that take turns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/temporary_folder.h"
#include "kernels/testing/custom_rules.h"
#include "paceline/error.h"
#include "paceline/hooks.h"
#include "paceline/ops.h"
#include "paceline/session.h"
#include "run/report/report.h"
#include "summary/event_reader.h"
#include "train/testing/quiet.h"
#include "train/testing/served.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

constexpr int kTurns[] = {0, 1, 0, 0, 1, 1, 1, 0};

void feed_nothing(Feed&) {}

Cluster alone() {
  Cluster cluster;
  cluster.threads = 1;
  return cluster;
}

MinimizeOptions without(const std::string& frozen) {
  return {.groups = {{.prefix = frozen, .frozen = true}}};
}

/// Two trainings: one moves the variable a halfway to b, the other moves b halfway to −a.
struct Pullers {
  Graph graph;
  Value a = graph.variable("a", {}, Initializer::constant(1));
  Value b = graph.variable("b", {}, Initializer::constant(4));
  std::vector<Training> trainings() const {
    return {minimize(square(sub(a, b)), Sgd{0.25f}, without("b")),
            minimize(square(add(a, b)), Sgd{0.25f}, without("a"))};
  }
};

void expect_pulled(const Cluster& cluster) {
  const Pullers pull;
  Session session(pull.trainings(), cluster, quiet());
  float a = 1, b = 4;
  std::int64_t made = 0;
  for (const int training : kTurns) {
    const auto result = session.step(training, feed_nothing);
    ASSERT_TRUE(result.has_value());
    const float distance = training == 0 ? a - b : a + b;
    (training == 0 ? a : b) -= distance / 2;
    EXPECT_EQ(result->loss, distance * distance);
    EXPECT_EQ(result->training, training);
    EXPECT_EQ(result->global_step, ++made);
    EXPECT_EQ(session.evaluate(pull.a, nullptr).item<float>(), a);
    EXPECT_EQ(session.evaluate(pull.b, nullptr).item<float>(), b);
  }
}

TEST(SeveralTrainings, EachMovesItsVariablesAndSeesThoseOfTheOther) { expect_pulled(alone()); }

TEST(SeveralTrainings, MoveThemOnAPsToo) {
  for (const char* link : {"tcp", "auto"}) {
    SCOPED_TRACE(link);
    const Served served;
    Cluster cluster = served.cluster();
    cluster.links.kind = link;
    expect_pulled(cluster);
  }
}

TEST(SeveralTrainings, OfTwoGraphsShareVariablesByName) {
  Graph one, two;
  const Value a = one.variable("a", {}, Initializer::constant(1));
  const Value b = one.variable("b", {}, Initializer::constant(4));
  const Value same_a = two.variable("a", {}), same_b = two.variable("b", {});
  const Value only_here = two.variable("c", {}, Initializer::constant(3));
  Session session({minimize(square(sub(a, b)), Sgd{0.25f}, without("b")),
                   minimize(square(add(add(same_a, same_b), only_here)), Sgd{0.25f}, without("a"))},
                  alone(), quiet());
  EXPECT_EQ(session.step(0, feed_nothing)->loss, 9);
  EXPECT_EQ(session.step(1, feed_nothing)->loss, 9.5 * 9.5) << "2.5 + 4 + 3";
  EXPECT_EQ(session.evaluate(only_here, nullptr).item<float>(), 3 - 4.75f);
  EXPECT_EQ(session.evaluate(b, nullptr).item<float>(), 4 - 4.75f);
}

TEST(SeveralTrainings, RefuseWhatCannotBe) {
  const Pullers pull;
  const auto refusal = [](auto&& part) -> std::string {
    try {
      part();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal([&] {
                Session({minimize(square(pull.a), Sgd{}),
                         minimize(square(sub(pull.a, pull.b)), Sgd{}, without("b"))},
                        alone(), quiet());
              }),
              HasSubstr("[variable a] updated by two trainings"));
  EXPECT_THAT(refusal([&] { Session(std::vector<Training>(), alone(), quiet()); }),
              HasSubstr("of no training"));
  Session session(pull.trainings(), alone(), quiet());
  EXPECT_THAT(refusal([&] { session.run(feed_nothing); }), HasSubstr("has 2 trainings"));
  EXPECT_THAT(refusal([&] { session.step(feed_nothing); }), HasSubstr("has 2 trainings"));
  EXPECT_THAT(refusal([&] { session.step(2, feed_nothing); }), HasSubstr("no training 2"));
  EXPECT_THAT(refusal([&] { session.step(-1, feed_nothing); }), HasSubstr("no training -1"));
}

TEST(SeveralTrainings, AreWatchedInTheStepsOfTheirGraph) {
  Graph one, two;
  const Value a = one.variable("a", {}, Initializer::constant(1)), doubled = scale(a, 2);
  const Value b = two.variable("b", {}, Initializer::constant(4)), halved = scale(b, 0.5);
  Session session({minimize(square(a), Sgd{0.25f}), minimize(square(b), Sgd{0.25f})}, alone(),
                  quiet(), {.watch = {halved, doubled}});
  session.step(1, feed_nothing);
  session.step(1, feed_nothing);
  EXPECT_EQ(session.value(halved).item<float>(), 1);
  session.step(0, feed_nothing);
  EXPECT_EQ(session.value(doubled).item<float>(), 2);
  EXPECT_EQ(session.value(halved).item<float>(), 1);
}

TEST(SeveralTrainings, EndAtTheGlobalStepOfAllAndReportTheFirst) {
  const TemporaryFolder folder;
  RunOptions run = quiet();
  run.steps = 4;
  run.report = folder.path("report.json");
  const Pullers pull;
  {
    Session session(pull.trainings(), alone(), run);
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(session.step(1 - i % 2, feed_nothing).has_value());
    EXPECT_FALSE(session.step(1, feed_nothing).has_value());
    EXPECT_TRUE(session.ended());
  }
  const Report report = read_report(run.report);
  EXPECT_EQ(report.global_step, 4);
  EXPECT_EQ(report.first_loss, 0.5 * 0.5) << "b is 1.5 then: of the first training, not of b's";
  EXPECT_EQ(report.tasks[0].steps, 4);
}

TEST(SeveralTrainings, AreEachInTheSummaries) {
  const TemporaryFolder folder;
  const Pullers pull;
  {
    Session session(pull.trainings(), alone(), quiet());
    session.add(Summaries(folder.path("events"), 4));
    for (const int training : {0, 1, 0, 1}) session.step(training, feed_nothing);
  }
  const std::filesystem::path events = folder.path("events") + "/worker:0";
  EventReader reader(std::filesystem::directory_iterator(events)->path());
  std::map<std::string, float> losses;
  while (const std::optional<SummaryEvent> event = reader.next()) {
    for (const SummaryValue& value : event->values) {
      if (value.tag.starts_with("loss")) losses[value.tag] = std::get<float>(value.value);
    }
  }
  // a: 1, 2.5, then (2.5 − 0.75) / 2; b: 4, then (4 − 2.5) / 2.
  EXPECT_EQ(losses["loss"], 1.75f * 1.75f);
  EXPECT_EQ(losses["loss/1"], 2.375f * 2.375f);
}

TEST(SeveralTrainings, AreEachSeenFromWithin) {
  const TemporaryFolder folder;
  const Pullers pull;
  RunOptions run = quiet();
  run.out = folder.path("out");
  run.save_every = {};
  run.summary_every = 4;
  run.summary_of.gradients = true;
  {
    Session session(pull.trainings(), alone(), run);
    for (int i = 0; i < 9; ++i) session.step(i % 2, feed_nothing);
  }
  const std::filesystem::path events = folder.path("out") + "/summaries/worker:0";
  EventReader reader(std::filesystem::directory_iterator(events)->path());
  std::map<std::string, std::vector<std::int64_t>> steps;
  std::map<std::string, float> first;
  while (const std::optional<SummaryEvent> event = reader.next()) {
    for (const SummaryValue& value : event->values) {
      if (!value.tag.starts_with("gradient_norm/")) continue;
      first.emplace(value.tag, std::get<float>(value.value));
      steps[value.tag].push_back(event->step);
    }
  }
  EXPECT_THAT(steps["gradient_norm/a"], ::testing::ElementsAre(1, 5, 9));
  EXPECT_THAT(steps["gradient_norm/b"], ::testing::ElementsAre(4, 8));
  EXPECT_EQ(first["gradient_norm/a"], 6) << "2 (1 - 4)";
}

/// A generator that has a table, a discriminator, and a state that the steps of both carry on.
class Players {
 public:
  static constexpr int kDiscriminator = 0, kGenerator = 1;

  Players(const Cluster& cluster, const RunOptions& run) {
    ids_ = graph_.input("ids", {6}, DType::kInt32);
    real_ = graph_.input("real", {6, 3});
    const Value state = graph_.local("state", {6, 4});
    const Value words =
        embedding_lookup(graph_.variable("g/table", {20, 4}, Initializer::uniform(-1, 1)), ids_);
    const Value h = tanh(add(words, scale(state, 0.5f)));
    graph_.assign(state, h);
    const Value fake = dense(h, 3, "g/out");
    const Value found = mean_square_from(judge(fake), 1);
    const Value loss = add(mean_square_from(judge(real_), 1), mean_square_from(judge(fake), 0));
    MinimizeOptions discriminator = without("g/"), generator = without("d/");
    discriminator.clip_norm = 0.3f;
    generator.learning_rate = Schedule::staircase(0.9, 7);
    session_ = std::make_unique<Session>(
        std::vector<Training>{minimize(loss, Adam{.learning_rate = 0.02f}, discriminator),
                              minimize(found, lion(0.01f), generator)},
        cluster, run);
  }

  /// Makes steps. Notes their losses and, now and then, a value that is read between two steps.
  void make(int steps) {
    for (int i = 0; i < steps; ++i) {
      const auto turn = std::size_t(session_->last_step().step) % std::size(kTurns);
      const auto made = session_->step(kTurns[turn], [this](Feed& feed) { fill(feed); });
      ASSERT_TRUE(made.has_value());
      seen_.push_back(made->loss);
      if (turn == 3) seen_.push_back(session_->variables().get("g/out/w").data<float>()[0]);
      if (turn == 6) seen_.push_back(session_->evaluate("d/out/w", nullptr).data<float>()[0]);
    }
    for (const std::string& name : session_->variables().names()) {
      const Tensor value = session_->variables().get(name);
      seen_.insert(seen_.end(), value.data<float>().begin(), value.data<float>().end());
    }
  }
  const std::vector<double>& seen() const { return seen_; }

 private:
  static Value judge(Value x) { return dense(tanh(dense(x, 5, "d/h")), 1, "d/out"); }
  static Value mean_square_from(Value x, float wanted) {
    const Value to = x.graph().constant(Tensor::of<float>({1}, {-wanted}));
    return reduce_mean(square(add(x, to)));
  }
  void fill(Feed& feed) {
    const auto ids = feed.data<std::int32_t>(ids_);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ids[i] = std::int32_t((std::size_t(feed.step()) * 7 + i * i) % 20);
    }
    feed.normal(real_);
  }

  Graph graph_;
  Value ids_, real_;
  std::unique_ptr<Session> session_;
  std::vector<double> seen_;
};

TEST(SeveralTrainings, OnAPsAreThoseOfOneProcess) {
  Players near(alone(), quiet());
  near.make(60);
  for (const char* link : {"tcp", "auto"}) {
    SCOPED_TRACE(link);
    const Served served;
    Cluster cluster = served.cluster();
    cluster.links.kind = link;
    Players far(cluster, quiet());
    far.make(60);
    EXPECT_EQ(near.seen(), far.seen());
  }
}

TEST(SeveralTrainings, GoOnFromACheckpoint) {
  const TemporaryFolder folder;
  RunOptions run = quiet();
  Players whole(alone(), run);
  whole.make(20);
  whole.make(20);
  run.out = folder.path("out");
  std::vector<double> parts;
  for (int part = 0; part < 2; ++part) {
    Players players(alone(), run);
    players.make(20);
    parts.insert(parts.end(), players.seen().begin(), players.seen().end());
    run.resume = true;
  }
  EXPECT_EQ(whole.seen(), parts);
}

}  // namespace
}  // namespace paceline
