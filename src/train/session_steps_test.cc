// Steps one at a time, and how they mix with runs.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "paceline/error.h"
#include "paceline/hooks.h"
#include "train/testing/session_fixture.h"

namespace paceline {
namespace {

using SessionSteps = SessionTest;

/// A hook that notes its calls in order: begin as 'b', a step as 's', end as 'e'.
class Told : public Hook {
 public:
  Told(std::string& told, std::int64_t last_step) : told_(told), last_step_(last_step) {}
  void begin(Session&) override { told_ += 'b'; }
  bool after_step(Session&, const StepResult& result) override {
    told_ += 's';
    return result.step != last_step_;
  }
  void end(Session&) override { told_ += 'e'; }

 private:
  std::string& told_;
  std::int64_t last_step_;
};

TEST_F(SessionSteps, MakesOneStepAtATimeAsARunDoes) {
  run_.steps = 20;
  std::vector<double> of_run, of_steps;
  struct Note : Hook {
    explicit Note(std::vector<double>& to) : losses(to) {}
    bool after_step(Session&, const StepResult& result) override {
      losses.push_back(result.loss);
      return true;
    }
    std::vector<double>& losses;
  };
  const Training both = training();
  Session(both, cluster_, run_).add(Note(of_run)).run(feeding());
  Session session(both, cluster_, run_);
  std::string told;
  session.add(Told(told, -1));
  while (const std::optional<StepResult> made = session.step(feeding())) {
    of_steps.push_back(made->loss);
    EXPECT_FALSE(session.ended());
    EXPECT_EQ(made->step, std::int64_t(of_steps.size()));
    EXPECT_EQ(made->step, session.last_step().step);
  }
  EXPECT_EQ(of_steps, of_run);
  EXPECT_TRUE(session.ended());
  EXPECT_EQ(told, "b" + std::string(20, 's') + "e");
  EXPECT_FALSE(session.step(feeding()).has_value()) << "20 steps are made";
  EXPECT_EQ(told.size(), 22u);
}

TEST_F(SessionSteps, StepsAndRunsMix) {
  std::string told;
  {
    Session session(training(), cluster_, run_);
    session.add(Told(told, 7));
    EXPECT_TRUE(session.step(feeding()).has_value());
    int left = 2;
    EXPECT_TRUE(session.run([&](Feed& f) { left-- > 0 ? feed(f) : f.stop(); }));
    EXPECT_EQ(told,
              "bse"
              "bsse");
    EXPECT_TRUE(session.step(feeding()).has_value());
    EXPECT_FALSE(session.step([](Feed& f) { f.stop(); }).has_value());
    EXPECT_FALSE(session.ended()) << "an epoch is over";
    EXPECT_TRUE(session.step(feeding()).has_value());
    EXPECT_TRUE(session.step(feeding()).has_value());
    EXPECT_EQ(told,
              "bse"
              "bsse"
              "bse"
              "bss");
    const std::optional<StepResult> last = session.step(feeding());
    ASSERT_TRUE(last.has_value()) << "the step that a hook ends training with";
    EXPECT_EQ(last->global_step, 7);
    EXPECT_TRUE(session.ended());
    EXPECT_FALSE(session.step(feeding()).has_value());
    left = 1;
    EXPECT_TRUE(session.run([&](Feed& f) { left-- > 0 ? feed(f) : f.stop(); }));
    EXPECT_FALSE(session.ended());
    EXPECT_TRUE(session.step(feeding()).has_value());
  }
  EXPECT_EQ(told,
            "bse"
            "bsse"
            "bse"
            "bssse"
            "bse"
            "bse")
      << "the last run ends with the session";
}

TEST_F(SessionSteps, AStepThatThrowsEndsItsRunUntold) {
  std::string told;
  Session session(training(), cluster_, run_);
  session.add(Told(told, -1));
  EXPECT_TRUE(session.step(feeding()).has_value());
  EXPECT_THROW(session.step([](Feed&) { throw Error(ErrorCode::kDataLoss, "torn"); }), Error);
  EXPECT_TRUE(session.step(feeding()).has_value());
  EXPECT_EQ(told,
            "bs"
            "bs");
}

TEST_F(SessionSteps, AStepNeedsATraining) {
  Session session(graph_, cluster_, run_);
  EXPECT_THROW(session.step(feeding()), Error);
}

}  // namespace
}  // namespace paceline
