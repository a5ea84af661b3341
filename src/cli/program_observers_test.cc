// Tests the observers of run_program in a program that has its own main function.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/temporary_folder.h"
#include "explain/explain.h"
#include "paceline/program.h"
#include "run/report/report.h"
#include "train/testing/session_fixture.h"

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ProgramObservers : public SessionTest {
 protected:
  ProgramObservers() {
    run_.quiet = false;
    run_.steps = 30;
    run_.report = folder_.path("report.json");
    ::setenv("XDG_CACHE_HOME", folder_.path("cache").c_str(), 1);
  }
  ~ProgramObservers() override { ::unsetenv("XDG_CACHE_HOME"); }
  std::string printed() {
    ::testing::internal::CaptureStdout();
    { Session(training(), cluster_, run_).run(feeding()); }
    return ::testing::internal::GetCapturedStdout();
  }

  const TemporaryFolder folder_;
};

TEST_F(ProgramObservers, ServeThePageAndSayWhatHeldTheRunBack) {
  run_.observers = program_observers({.at = "127.0.0.1:0"});
  const std::string output = printed();
  const Report report = read_report(run_.report);
  EXPECT_THAT(output, AllOf(HasSubstr("Dashboard: http://127.0.0.1:"), HasSubstr("loss "),
                            HasSubstr(explanation(report))));
  EXPECT_GT(report.value("bound", "steps_per_s").value_or(0), 0);
}

TEST_F(ProgramObservers, AreNotThereUnasked) {
  const std::string output = printed();
  const Report report = read_report(run_.report);
  EXPECT_THAT(output, AllOf(HasSubstr("loss "), Not(HasSubstr(explanation(report)))));
  EXPECT_FALSE(report.value("bound", "steps_per_s"));
}

}  // namespace
}  // namespace paceline
