#include "dashboard/dashboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/real_clock.h"
#include "base/temporary_folder.h"
#include "dashboard/http_get.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;
using namespace std::chrono_literals;

class DashboardTest : public ::testing::Test {
 protected:
  Dashboard::Options options() {
    Dashboard::Options options;
    options.at = {"127.0.0.1", 0};
    options.about.tasks = {"worker:0", "worker:1"};
    options.clock = &clock_;
    options.board = &board_;
    options.every = 1ms;
    return options;
  }
  static std::string progress(const std::string& task, std::int64_t steps) {
    TaskProgress progress;
    progress.at = double(steps);
    TaskReport report;
    report.task = task;
    report.steps = steps;
    progress.report.tasks = {report};
    return progress.to_json();
  }
  static Json state(const Dashboard& page) {
    return Json::parse(http_get(page.url() + "/state.json", Deadline::after(1h)).body);
  }
  // The state once a task has made so many steps.
  static Json state_with(const Dashboard& page, std::size_t task, std::int64_t steps) {
    for (const Deadline until = Deadline::after(60s); !until.passed();) {
      Json now = state(page);
      if (now["tasks"][task].value("steps", std::int64_t{-1}) == steps) return now;
      std::this_thread::sleep_for(1ms);
    }
    ADD_FAILURE() << "it does not show it";
    return {};
  }

  RealClock clock_;
  ProgressBoard board_;
};

TEST_F(DashboardTest, ShowsWhatThisTaskTellsAndHearsOfOthers) {
  Dashboard page(options());
  EXPECT_TRUE(state(page)["tasks"][0]["heard_s"].is_null());
  board_.tell(progress("worker:0", 7));
  board_.heard("worker:1", progress("worker:1", 9));
  EXPECT_EQ(state_with(page, 0, 7)["state"], "training");
  EXPECT_EQ(state_with(page, 1, 9)["tasks"][1]["task"], "worker:1");
}

TEST_F(DashboardTest, WordsThatMakeNoSenseAreLeftOut) {
  Dashboard page(options());
  board_.heard("worker:1", "no JSON");
  board_.heard("worker:9", progress("worker:9", 3));
  board_.tell(progress("worker:0", 7));
  EXPECT_TRUE(state_with(page, 0, 7)["tasks"][1]["heard_s"].is_null());
  board_.heard("worker:1", progress("ps:0", 9));
  EXPECT_EQ(state_with(page, 1, 9)["tasks"][1]["task"], "worker:1") << "it speaks of itself only";
}

TEST_F(DashboardTest, AsksTheOthersAgainAndAgainUntilItIsToldNotTo) {
  Dashboard page(options());
  std::atomic<int> asked{0};
  page.ask_with([&] {
    ++asked;
    throw Error(ErrorCode::kUnavailable, "whatever happens");
  });
  for (const Deadline until = Deadline::after(60s); asked < 3 && !until.passed();) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_GE(asked, 3);
  page.ask_with({});
  const int before = asked;
  board_.tell(progress("worker:0", 7));
  state_with(page, 0, 7);
  EXPECT_EQ(asked, before);
}

TEST_F(DashboardTest, ThereIsNoOtherPage) {
  const Dashboard page(options());
  EXPECT_EQ(http_get(page.url() + "/etc/passwd", Deadline::after(1h)).status, 404);
  EXPECT_EQ(http_get(page.url() + "/metrics", Deadline::after(1h)).status, 200);
}

TEST_F(DashboardTest, TheFileWithItsAddressGoesWithIt) {
  const TemporaryFolder folder;
  Dashboard::Options how = options();
  how.address_file = folder.path("dashboard");
  {
    const Dashboard page(how);
    std::string url;
    std::ifstream file(how.address_file);
    std::getline(file, url);
    EXPECT_EQ(url, page.url());
  }
  EXPECT_FALSE(std::filesystem::exists(how.address_file));
}

TEST_F(DashboardTest, APortThatIsTakenIsAnErrorThatNamesTheFlag) {
  const Dashboard page(options());
  Dashboard::Options how = options();
  how.at = parse_address(page.url().substr(7));
  try {
    const Dashboard second(how);
    FAIL() << "it listens";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("--dashboard 127.0.0.1:"));
  }
}

}  // namespace
}  // namespace paceline
