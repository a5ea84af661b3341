#include "run/report/run_folder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <climits>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/temporary_folder.h"
#include "base/testing/error_of.h"
#include "checkpoint/checkpoint_save.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using testing::HasSubstr;

class RunFolder : public testing::Test {
 protected:
  RunFolder() {
    run_.out = folder_.path("out");
    run_.quiet = true;
  }
  void save(std::int64_t step) const {
    const Checkpoints checkpoints(checkpoints_folder(run_));
    CheckpointSave save(checkpoints, step);
    CheckpointIndex index;
    index.global_step = step;
    save.finish(index);
  }
  std::string refusal(ErrorCode code = ErrorCode::kUsage) const {
    return error_of(code, [&] { prepare_run_folder(cluster_, run_); });
  }
  TemporaryFolder folder_;
  Cluster cluster_;
  RunOptions run_;
};

TEST_F(RunFolder, IsMade) {
  EXPECT_EQ(refusal(), "");
  EXPECT_TRUE(std::filesystem::is_directory(run_.out));
}

TEST_F(RunFolder, OfAnotherRunIsRefusedNamingItsPidAndHost) {
  char host[HOST_NAME_MAX + 1] = {};
  ASSERT_EQ(gethostname(host, HOST_NAME_MAX), 0);
  {
    const auto lock = prepare_run_folder(cluster_, run_);
    const std::string who = fmt::format("pid {} on host {}", getpid(), host);
    EXPECT_THAT(refusal(), HasSubstr("another run writes there (" + who + ")"));
    run_.overwrite = true;
    EXPECT_THAT(refusal(), HasSubstr(who));
  }
  EXPECT_EQ(refusal(), "");
  EXPECT_TRUE(std::filesystem::is_empty(run_.out));
}

TEST_F(RunFolder, WhoseRunWasKilledIsLockedNoLonger) {
  std::filesystem::create_directory(run_.out);
  std::ofstream(run_.out + "/lock") << "pid 1 on host elsewhere\n";
  EXPECT_EQ(refusal(), "");
}

TEST_F(RunFolder, KeepsTheReportOfTheRunBeforeWhenNothingWasDone) {
  prepare_run_folder(cluster_, run_);
  run_.report = folder_.path("report.json");
  Report before, nothing;
  before.model = "before";
  before.tasks.emplace_back().steps = 7;
  write_reports(cluster_, run_, before);
  run_.resume = true;
  nothing.tasks.emplace_back().steps = 0;
  write_reports(cluster_, run_, nothing);
  for (const std::string& file : {run_.report, run_.out + "/report.json"}) {
    EXPECT_EQ(read_report(file).steps(), 7);
    EXPECT_EQ(read_report(file).circumstances, circumstances());
  }
}

TEST_F(RunFolder, KeepsTheReportOfTheRunBeforeWhenThisOneDidNotBegin) {
  prepare_run_folder(cluster_, run_);
  run_.report = folder_.path("report.json");
  Report before, refused;
  before.tasks.emplace_back().steps = 7;
  refused.tasks.emplace_back().steps = 0;
  refused.error = "it was refused";
  const std::string files[] = {run_.report, run_.out + "/report.json"};
  write_reports(cluster_, run_, refused);
  for (const std::string& file : files) EXPECT_EQ(read_report(file).error, "it was refused");
  write_reports(cluster_, run_, before);
  write_reports(cluster_, run_, refused);
  for (const std::string& file : files) EXPECT_EQ(read_report(file).steps(), 7);
  refused.tasks[0].steps = 1;
  write_reports(cluster_, run_, refused);
  for (const std::string& file : files) EXPECT_EQ(read_report(file).error, "it was refused");
}

TEST_F(RunFolder, WithACheckpointIsRefusedNamingItsStep) {
  save(40);
  save(70);
  EXPECT_THAT(refusal(), HasSubstr("holds a checkpoint of step 70: --resume"));
  run_.overwrite = true;
  EXPECT_EQ(refusal(), "");
  run_.overwrite = false;
  run_.resume = true;
  EXPECT_EQ(refusal(), "");
}

TEST_F(RunFolder, WithTornCheckpointsOnlyIsNotResumed) {
  std::filesystem::create_directories(run_.out + "/checkpoints/step-9");
  EXPECT_THAT(refusal(), HasSubstr("step 9, which is not whole"));
  run_.resume = true;
  EXPECT_THAT(refusal(ErrorCode::kDataLoss), HasSubstr("step-9"));
  EXPECT_THAT(refusal(ErrorCode::kDataLoss), HasSubstr("; --overwrite instead deletes"));
}

TEST_F(RunFolder, ThatCannotBeMadeIsRefused) {
  run_.out = "/proc/nowhere";
  EXPECT_THAT(refusal(), HasSubstr("--out /proc/nowhere: the folder cannot be made"));
  run_.out = std::string(300, 'a');
  EXPECT_THAT(refusal(), HasSubstr("--out " + run_.out + ": the folder cannot be made"));
}

TEST_F(RunFolder, IsTheBusinessOfTheProcessThatDecides) {
  cluster_.process = Cluster::Process::kTask;
  cluster_.task = {TaskId::Role::kWorker, 1};
  EXPECT_EQ(refusal(), "");
  EXPECT_FALSE(std::filesystem::exists(run_.out));
  EXPECT_TRUE(report_files(cluster_, run_).empty());
  cluster_.task.index = 0;
  EXPECT_EQ(report_files(cluster_, run_), std::vector{run_.out + "/report.json"});
}

TEST_F(RunFolder, HoldsATimelineUnlessAnotherFileIsNamed) {
  EXPECT_EQ(timeline_file(cluster_, run_), run_.out + "/timeline/timeline.json");
  EXPECT_TRUE(std::filesystem::is_directory(run_.out + "/timeline"));
  cluster_.process = Cluster::Process::kTask;
  cluster_.task = {TaskId::Role::kPs, 1};
  EXPECT_EQ(timeline_file(cluster_, run_), run_.out + "/timeline/ps:1.json");
  cluster_.launch.launched = true;  // a launcher names the files of its tasks
  EXPECT_EQ(timeline_file(cluster_, run_), "");
  run_.timeline = "t.json";
  EXPECT_EQ(timeline_file(cluster_, run_), "t.json");
  EXPECT_EQ(timeline_file({}, {}), "");
}

TEST(ResumeCommand, IsWhatOneWouldType) {
  EXPECT_EQ(resume_command("./a b", {"--out", "d", "--overwrite", "--set", "x=it's"}),
            "'./a b' --out d --set 'x=it'\\''s' --resume");
  EXPECT_EQ(resume_command("p", {"--resume", "--out", "d"}), "p --out d --resume");
}

}  // namespace
}  // namespace paceline
