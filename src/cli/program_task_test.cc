// Tests tasks of a job in a program whose main function is not Paceline's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "base/temporary_folder.h"
#include "checkpoint/input_file.h"
#include "net/held_ports.h"
#include "paceline/error.h"
#include "paceline/external_store.h"
#include "paceline/program.h"
#include "train/testing/external_trainee.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

std::size_t train(const ProgramTask& task, std::int64_t steps, int part = 0, int parts = 1) {
  ExternalTrainee model(false, part, parts);
  ExternalStore store(model.variables(), Sgd{.learning_rate = 0.1f}, task.cluster(), task.run());
  return model.train(store, 0, steps).size();
}

std::string refusal(const std::vector<std::string>& arguments) {
  try {
    const ProgramTask task(arguments);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  return "";
}

TEST(ProgramTask, TrainsByItsFlagsAndWritesTheReport) {
  const TemporaryFolder folder;
  ProgramOptions options;
  const Setting<std::int64_t> batch = batch_setting(8);
  options.settings = {batch};
  ProgramTask task({"script", "--steps", "3", "--batch", "4", "--quiet", "--threads", "1", "--out",
                    folder.path("out")},
                   options);
  ASSERT_FALSE(task.status());
  EXPECT_EQ(task.settings()[batch], 4);
  EXPECT_EQ(train(task, 10), 3U);
  task.end();
  EXPECT_EQ(task.status(), 0);
}

TEST(ProgramTask, ThrowsWhatAProgramWouldPrint) {
  EXPECT_THAT(refusal({"script", "--stepz", "3"}), HasSubstr("--stepz"));
  EXPECT_THAT(refusal({"script", "--ps", "1", "--workers", "2"}),
              HasSubstr("paceline launch --ps M --workers N -- COMMAND"));
}

TEST(ProgramTask, TellsTheReportOfAnErrorOfTheProgram) {
  const TemporaryFolder folder;
  ProgramTask task({"script", "--quiet", "--threads", "1", "--report", folder.path("report.json")});
  task.end(std::make_exception_ptr(std::runtime_error("the data is gone")));
  EXPECT_EQ(task.status(), 1);
  EXPECT_THAT(read_text(folder.path("report.json"), 1 << 20), HasSubstr("the data is gone"));
}

TEST(ProgramTask, BeginsAgainFromACheckpointWhenAPsWasLost) {
  const TemporaryFolder folder;
  ProgramTask task(
      {"script", "--quiet", "--threads", "1", "--steps", "4", "--out", folder.path("out")});
  EXPECT_FALSE(task.run().resume);
  EXPECT_EQ(train(task, 2), 2U);
  task.end(std::make_exception_ptr(Error(ErrorCode::kAborted, "ps:0 was lost with its values")));
  ASSERT_FALSE(task.status());
  EXPECT_TRUE(task.run().resume);
  EXPECT_EQ(train(task, 10), 2U) << "the steps that are left";
  task.end();
  EXPECT_EQ(task.status(), 0);
}

TEST(ProgramTask, AParameterServerServesUntilTheWorkersHaveEnded) {
  const HeldPorts ports(3);
  const std::string cluster =
      "ps=" + ports.addresses()[0] + ";worker=" + ports.addresses()[1] + "," + ports.addresses()[2];
  const auto flags = [&](const std::string& task) {
    return std::vector<std::string>{"script",  "--cluster", cluster,      "--task",
                                    task,      "--quiet",   "--strategy", "sync",
                                    "--steps", "5",         "--threads",  "1"};
  };
  auto ps = std::async(std::launch::async, [&] { return ProgramTask(flags("ps:0")).status(); });
  std::vector<std::future<std::size_t>> workers;
  workers.reserve(2);
  for (int worker = 0; worker < 2; ++worker) {
    workers.push_back(std::async(std::launch::async, [&, worker] {
      ProgramTask task(flags("worker:" + std::to_string(worker)));
      const std::size_t made = train(task, 100, worker, 2);
      task.end();
      EXPECT_EQ(task.status(), 0);
      return made;
    }));
  }
  for (auto& worker : workers) EXPECT_EQ(worker.get(), 5U);
  EXPECT_EQ(ps.get(), 0);
}

}  // namespace
}  // namespace paceline
