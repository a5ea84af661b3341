#include "summary/event_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "paceline/error.h"
#include "summary/event_writer.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class EventFolder : public ::testing::Test {
 protected:
  ~EventFolder() override { std::filesystem::remove_all(folder_); }
  // Writes steps and losses of a run that began after `first_step`.
  void write(const std::string& task, std::int64_t first_step, const std::string& name,
             const std::vector<std::pair<std::int64_t, float>>& losses) const {
    const std::string folder = folder_ + "/summaries/" + task;
    EventWriter writer(folder, first_step);
    for (const auto& [step, loss] : losses) {
      writer.add({.step = step, .values = {{"loss", loss}, {"w", Histogram()}}});
    }
    std::filesystem::rename(writer.path(), folder + "/" + name);
  }
  static std::vector<std::pair<std::int64_t, double>> losses(const TaskSummaries& task) {
    std::vector<std::pair<std::int64_t, double>> losses;
    for (const SummaryPoint& point : task.numbers.at("loss")) {
      losses.emplace_back(point.step, point.value);
    }
    return losses;
  }

  const std::string folder_ = ::testing::TempDir() + "paceline-folder-" + std::to_string(getpid());
};

TEST_F(EventFolder, HoldsTheNumbersOfEachTask) {
  write("worker:1", 0, "events.out.tfevents.1", {{3, 1}});
  write("worker:0", 0, "events.out.tfevents.1", {{2, 4}, {4, 2}});
  for (const std::string& folder :
       {folder_, folder_ + "/", folder_ + "/summaries", folder_ + "/summaries/"}) {
    const auto tasks = read_summaries(folder);
    ASSERT_EQ(tasks.size(), 2U) << folder;
    EXPECT_EQ(tasks[0].task, "worker:0");
    EXPECT_THAT(losses(tasks[0]), ElementsAre(std::pair(2, 4), std::pair(4, 2)));
    EXPECT_THAT(losses(tasks[1]), ElementsAre(std::pair(3, 1)));
  }
  EXPECT_EQ(read_summaries(folder_ + "/summaries/worker:1")[0].task, "worker:1");
}

TEST_F(EventFolder, AResumedRunTakesThePlaceOfWhatCameLater) {
  write("worker:0", 0, "events.out.tfevents.1", {{2, 4}, {4, 3}, {6, 2}});
  write("worker:0", 4, "events.out.tfevents.2", {{6, 1}, {8, 0}});
  EXPECT_THAT(losses(read_summaries(folder_)[0]),
              ElementsAre(std::pair(2, 4), std::pair(4, 3), std::pair(6, 1), std::pair(8, 0)));
}

TEST_F(EventFolder, SaysWhenThereIsNone) {
  try {
    read_summaries(folder_ + "/none");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(folder_ + "/none: no event files"));
  }
}

}  // namespace
}  // namespace paceline
