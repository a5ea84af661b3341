#include "cli/evaluator_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "base/temporary_folder.h"
#include "checkpoint/checkpoint_save.h"
#include "paceline/error.h"
#include "run/report/circumstances.h"
#include "run/report/folder_lock.h"
#include "summary/event_reader.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

class EvaluatorTask : public ::testing::Test {
 protected:
  EvaluatorTask() { run_.out = folder_.path("run"); }

  void save(std::int64_t step) {
    std::filesystem::create_directories(run_.out);
    const Checkpoints checkpoints(run_.out + "/checkpoints");
    CheckpointSave saved(checkpoints, step);
    CheckpointIndex index;
    index.global_step = step;
    saved.finish(index);
  }
  CheckpointEvaluations evaluations(EvaluateCheckpoint evaluate) {
    return {run_, std::move(evaluate), log_};
  }

  TemporaryFolder folder_;
  RunOptions run_;
  const Log log_{LogOptions{}};
};

TEST_F(EvaluatorTask, EachCheckpointIsEvaluatedOnceAndTheBestIsKept) {
  std::vector<Evaluation> scores = {{1.5, 0.25, 10}, {1.25, 0.75, 20}, {1.0, 0.5, 30}};
  std::size_t calls = 0;
  CheckpointEvaluations evaluated = evaluations([&](const RunOptions& run) {
    EXPECT_EQ(run.out, run_.out);
    EXPECT_TRUE(run.resume);
    return scores.at(calls++);
  });
  EXPECT_FALSE(evaluated.evaluate_newest());
  ::testing::internal::CaptureStdout();
  for (const std::int64_t step : {10, 20, 30}) {
    save(step);
    EXPECT_TRUE(evaluated.evaluate_newest());
    EXPECT_FALSE(evaluated.evaluate_newest());
  }
  evaluated.print_last_line();
  const std::string said = ::testing::internal::GetCapturedStdout();
  EXPECT_THAT(said, HasSubstr("step 20: loss 1.2500, precision 0.7500, best precision 0.7500\n"));
  EXPECT_THAT(said, HasSubstr("step 30: loss 1.0000, precision 0.5000, best precision 0.7500\n"));
  EXPECT_THAT(said, HasSubstr("precision 0.5000, best 0.7500 at step 20\n"));
}

TEST_F(EvaluatorTask, EvaluationsAreSummariesInAFolderOfTheirOwn) {
  CheckpointEvaluations evaluated = evaluations([](const RunOptions&) {
    return Evaluation{1.5, 0.25, 10};
  });
  save(10);
  ::testing::internal::CaptureStdout();
  evaluated.evaluate_newest();
  ::testing::internal::GetCapturedStdout();
  const std::filesystem::directory_iterator files(run_.out + "/summaries/evaluator");
  EventReader reader(files->path());
  SummaryEvent last;
  while (std::optional<SummaryEvent> event = reader.next()) last = *event;
  EXPECT_EQ(last.step, 10);
  ASSERT_EQ(last.values.size(), 3U);
  EXPECT_EQ(last.values[1].tag, "precision/valid");
}

TEST_F(EvaluatorTask, ACheckpointThatTheRunDeletesMeanwhileIsPassedOver) {
  bool first = true;
  CheckpointEvaluations evaluated = evaluations([&](const RunOptions&) {
    if (!first) return Evaluation{1, 0.5, 20};
    first = false;
    std::filesystem::remove_all(run_.out + "/checkpoints");
    save(20);
    throw Error(ErrorCode::kNotFound, "the checkpoint of step 10 is gone");
  });
  save(10);
  ::testing::internal::CaptureStdout();
  EXPECT_TRUE(evaluated.evaluate_newest());
  EXPECT_TRUE(evaluated.evaluate_newest());
  evaluated.print_last_line();
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), HasSubstr("best 0.5000 at step 20"));
}

TEST_F(EvaluatorTask, AnEvaluationThatFailsEndsIt) {
  CheckpointEvaluations evaluated = evaluations([](const RunOptions&) -> Evaluation {
    throw Error(ErrorCode::kFailedPrecondition, "of another model");
  });
  EXPECT_THROW(evaluated.print_last_line(), Error);
  save(10);
  EXPECT_THROW(evaluated.evaluate_newest(), Error);
}

TEST_F(EvaluatorTask, ARunThatBeganAndEndedBetweenTwoLooksIsOver) {
  const Interrupt interrupt;
  std::int64_t step = 0;
  CheckpointEvaluations evaluated = evaluations([&](const RunOptions&) {
    step += 10;
    // During the first evaluation, saves step 20 as a run would do; no lock shows a run.
    if (step == 10) save(20);
    return Evaluation{1, 0.5, step};
  });
  save(10);
  ::testing::internal::CaptureStdout();
  follow_run(evaluated, run_.out, interrupt, {.begins_within = std::chrono::hours(1)});
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), HasSubstr("step 20: loss"));
}

TEST_F(EvaluatorTask, ALockIsHeldAsLongAsItsProcessLives) {
  std::filesystem::create_directories(run_.out);
  EXPECT_FALSE(is_locked(run_.out));
  {
    const FolderLock lock(run_.out);
    EXPECT_TRUE(is_locked(run_.out));
  }
  EXPECT_FALSE(is_locked(run_.out));
  const pid_t dead = fork();
  if (dead == 0) _exit(0);
  waitpid(dead, nullptr, 0);
  const auto write_holder = [&](const std::string& host) {
    std::ofstream(run_.out + "/lock") << "pid " << dead << " on host " << host << "\n";
  };
  write_holder(host_name());
  EXPECT_FALSE(is_locked(run_.out));
  write_holder("another." + host_name());
  EXPECT_TRUE(is_locked(run_.out));
}

}  // namespace
}  // namespace paceline
