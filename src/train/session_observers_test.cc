// Observers of a session: the times of their calls, and the end of a session that one of them does
// not let start.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "base/deadline.h"
#include "base/temporary_folder.h"
#include "exec/plan.h"
#include "paceline/error.h"
#include "paceline/evaluator.h"
#include "paceline/hooks.h"
#include "paceline/observer.h"
#include "run/program_run.h"
#include "run/report/report.h"
#include "run/report/task_progress.h"
#include "train/planned_only.h"
#include "train/session_inside.h"
#include "train/testing/served.h"
#include "train/testing/session_fixture.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Notes the moments of its session in a list that all observers share.
class Noted : public SessionObserver {
 public:
  explicit Noted(std::vector<std::string>& seen) : seen_(seen) {}
  ~Noted() override { seen_.emplace_back("gone"); }
  bool planned(const PlannedSession& session) override {
    seen_.push_back("planned " + session.options.model);
    return true;
  }
  void joining(RunningSession&) override { seen_.emplace_back("joining"); }
  void joined(RunningSession& session) override {
    seen_.push_back("joined " + std::to_string(session.variables().size()));
  }
  void begins(RunningSession& session) override {
    EXPECT_FALSE(session.plan(0).kernels.empty());
    seen_.push_back("begins " + std::to_string(session.made_of().options.examples_per_step));
  }
  bool wants_progress() const override { return true; }
  void progressed(RunningSession& session) override {
    seen_.push_back("progressed " + std::to_string(session.last_step().step));
    const Report now = Report::from_json(session.report_text());
    EXPECT_EQ(now.tasks.at(0).steps, session.last_step().step);
    const std::vector<TaskWords> heard = session.hear();
    ASSERT_EQ(heard.size(), 1u);
    EXPECT_EQ(heard[0].task, "worker:0");
    EXPECT_EQ(TaskProgress::from_json(heard[0].progress).report.model, now.model);
  }
  void ended(RunningSession& session) override {
    session.add_to_report("mine", "steps", double(session.report().tasks.at(0).steps));
    seen_.emplace_back("ended");
  }
  void summed_up(RunningSession&) override { seen_.emplace_back("summed up"); }

 private:
  std::vector<std::string>& seen_;
};

class SessionObserversTest : public SessionTest {
 protected:
  SessionObserversTest() { run_.report = folder_.path("report.json"); }

  template <typename Observer, typename... Parts>
  void observe_by(Parts&... parts) {
    run_.observers.push_back(
        [&](const PlannedSession&) { return std::make_unique<Observer>(parts...); });
  }
  /// Lets no session start.
  void only_plan() {
    run_.observers.push_back(planned_only([this](const PlannedSession& session) {
      ++shown_;
      return !session.trainings.empty();
    }));
  }

  const TemporaryFolder folder_;
  std::vector<std::string> seen_;
  int shown_ = 0;
};

TEST_F(SessionObserversTest, SeeASessionFromItsPlanToItsEnd) {
  observe_by<Noted>(seen_);
  run_.observers.emplace_back([](const PlannedSession&) { return nullptr; });
  run_.steps = 3;
  {
    Session session(training(), cluster_, run_, {.model = "line"});
    EXPECT_TRUE(session.started());
    session.run(feeding());
  }
  EXPECT_THAT(seen_, ElementsAre("planned line", "joining", "joined 2", "begins 16", "progressed 0",
                                 "progressed 3", "ended", "summed up", "gone"));
  EXPECT_EQ(read_report(run_.report).value("mine", "steps"), 3);
}

// The ps has nothing to tell, and yet its answer is heard.
TEST_F(SessionObserversTest, EachHearsOfTheOtherTasks) {
  struct Hears : SessionObserver {
    explicit Hears(int& how_often) : heard(how_often) {}
    void begins(RunningSession& session) override {
      const Deadline deadline = Deadline::after(std::chrono::seconds(30));
      bool of_ps = false;
      while (!of_ps && !deadline.passed()) {
        session.ask_others();
        for (const TaskWords& each : session.hear()) of_ps = of_ps || each.task == "ps:0";
        std::this_thread::yield();
      }
      heard += of_ps ? 1 : 0;
    }
    int& heard;
  };
  int heard = 0;
  observe_by<Hears>(heard);
  observe_by<Hears>(heard);
  run_.steps = 1;
  const Served served;
  { Session(training(), served.cluster(), run_).run(feeding()); }
  EXPECT_EQ(heard, 2);
}

TEST_F(SessionObserversTest, AnObserverThatThrowsEndsTheSession) {
  struct Refuses : SessionObserver {
    void begins(RunningSession&) override { throw std::runtime_error("not so"); }
  };
  observe_by<Refuses>();
  {
    Session session(training(), cluster_, run_);
    EXPECT_THROW(session.run(feeding()), std::runtime_error);
  }
  EXPECT_EQ(read_report(run_.report).error, "not so");
}

TEST_F(SessionObserversTest, AnErrorAtTheEndIsToldAsOneOfSaving) {
  struct Refuses : SessionObserver {
    void ended(RunningSession&) override { throw std::runtime_error("no such folder"); }
  };
  observe_by<Refuses>();
  run_.steps = 1;
  std::string told;
  own_program_run(run_).on_failed_end = [&](const std::string& message) { told = message; };
  { Session(training(), cluster_, run_).run(feeding()); }
  EXPECT_EQ(told, "no such folder");
  EXPECT_EQ(read_report(run_.report).error, "no such folder");
}

TEST_F(SessionObserversTest, LetASessionNotStart) {
  only_plan();
  observe_by<Noted>(seen_);
  const Value doubled = graph_.named("doubled", mul(prediction_, prediction_));
  Session session(training(), cluster_, run_, {.watch = {loss_}});
  EXPECT_EQ(shown_, 1);
  EXPECT_FALSE(session.started());
  EXPECT_TRUE(session.ended());
  session.add(StepCounter());
  const auto never = [](Feed&) { FAIL() << "nothing is fed"; };
  EXPECT_FALSE(session.run(never));
  EXPECT_FALSE(session.step(never).has_value());
  EXPECT_EQ(session.last_step().step, 0);
  EXPECT_EQ(session.value(loss_).item<float>(), 0);
  const Tensor evaluated = session.evaluate(doubled, never);
  EXPECT_EQ(evaluated.shape(), Shape({16, 1}));
  EXPECT_EQ(evaluated.data<float>()[15], 0);
  EXPECT_EQ(session.evaluate("loss", never).item<float>(), 0);
  EXPECT_EQ(session.fetch(graph_, {{prediction_}}, never)[0].shape, Shape({16, 1}));
  EXPECT_THAT(session.variables().names(), ElementsAre("layer/w", "layer/b"));
  EXPECT_EQ(session.variables().get("layer/w").shape(), Shape({1, 1}));
  EXPECT_THROW(session.variables().get("layer/v"), Error);
  int variables = 0;
  SessionInside(session).see_variables([&](const std::string&, const Tensor&) { ++variables; });
  EXPECT_EQ(variables, 2);
  Evaluator evaluator(session);
  evaluator.take_values();
  EXPECT_EQ(evaluator.evaluate(loss_, never).item<float>(), 0);
  EXPECT_EQ(evaluator.global_step(), 0);
  EXPECT_THAT(SessionInside(session).seconds_spent(), IsEmpty());
  EXPECT_EQ(SessionInside(session).staleness().contributions, 0);
  EXPECT_FALSE(SessionInside(session).begin_save());
  session.save();
  session.stop_all();
  session.finish_training();
  session.reset_locals(graph_);
  session.begin_evaluation();
  session.summarise("tag", 1);
  session.report("mine", "key", 1);
  session.share(graph_).on_save([](TaskPosition&) {});
  EXPECT_THAT(seen_, IsEmpty()) << "those after it are not asked";
}

TEST_F(SessionObserversTest, OfASessionThatDidNotStartNothingIsWrittenOrPrinted) {
  only_plan();
  run_.quiet = false;
  run_.out = folder_.path("out");
  ::testing::internal::CaptureStdout();
  {
    Session session(training(), cluster_, run_);
    session.run(feeding());
    session.print("trained");
    SessionInside(session).print_progress("trains");
  }
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_FALSE(std::filesystem::exists(run_.report));
  EXPECT_FALSE(std::filesystem::exists(run_.out));
}

TEST_F(SessionObserversTest, WhatStandsForTrainingIsShownOnce) {
  only_plan();
  { const Session evaluates(graph_, cluster_, run_); }
  EXPECT_EQ(shown_, 1);
  const RunOptions again = run_;
  { const Session trains(training(), cluster_, run_); }
  EXPECT_EQ(shown_, 2);
  { const Session trains(training(), cluster_, again); }
  EXPECT_EQ(shown_, 2);
}

}  // namespace
}  // namespace paceline
