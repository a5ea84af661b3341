#include "dashboard/dashboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

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
  static Dashboard::Options options() {
    Dashboard::Options options;
    options.at = {"127.0.0.1", 0};
    return options;
  }
  static LiveRun run() {
    RunAbout about;
    about.tasks = {"worker:0", "worker:1"};
    return {about, TimePoint{1h}};
  }
  static Json state(const Dashboard& page) {
    return Json::parse(http_get(page.url() + "/state.json", Deadline::after(1h)).body);
  }
};

TEST_F(DashboardTest, ShowsTheRunSuchAsItWasLast) {
  LiveRun live = run();
  Dashboard page(options(), live, TimePoint{1h});
  EXPECT_TRUE(state(page)["tasks"][0]["heard_s"].is_null());
  TaskProgress progress;
  TaskReport report;
  report.task = "worker:0";
  report.steps = 7;
  progress.report.tasks = {report};
  live.heard("worker:0", progress, TimePoint{1h} + 1s);
  page.renew(live, TimePoint{1h} + 2s);
  EXPECT_EQ(state(page)["tasks"][0]["steps"], 7);
  EXPECT_EQ(state(page)["tasks"][0]["heard_s"], 1);
}

TEST_F(DashboardTest, WithATokenIsShownToWhoeverKnowsIt) {
  Dashboard::Options how = options();
  how.token = "0123456789abcdef";
  const Dashboard page(how, run(), TimePoint{1h});
  const auto status = [&](const std::string& path, const std::string& token) {
    return http_get(page.url() + path, Deadline::after(1h), {.token = token}).status;
  };
  for (const std::string path : {"/", "/state.json", "/metrics", "/none"}) {
    EXPECT_EQ(status(path, ""), 401) << path;
    EXPECT_EQ(status(path, "0123456789abcdee"), 401) << path;
    EXPECT_EQ(status(path + "?token=0123456789abcdef0", ""), 401) << path;
    EXPECT_EQ(status(path, how.token), path == "/none" ? 404 : 200) << path;
    EXPECT_EQ(status(path + "?token=" + how.token, ""), path == "/none" ? 404 : 200) << path;
  }
}

TEST_F(DashboardTest, ThereIsNoOtherPage) {
  const Dashboard page(options(), run(), TimePoint{1h});
  EXPECT_EQ(http_get(page.url() + "/etc/passwd", Deadline::after(1h)).status, 404);
  EXPECT_EQ(http_get(page.url() + "/metrics", Deadline::after(1h)).status, 200);
}

TEST_F(DashboardTest, TheFileWithItsAddressGoesWithIt) {
  const TemporaryFolder folder;
  Dashboard::Options how = options();
  how.address_file = folder.path("dashboard");
  {
    const Dashboard page(how, run(), TimePoint{1h});
    std::string url;
    std::ifstream file(how.address_file);
    std::getline(file, url);
    EXPECT_EQ(url, page.url());
  }
  EXPECT_FALSE(std::filesystem::exists(how.address_file));
}

TEST_F(DashboardTest, APortThatIsTakenIsAnErrorThatNamesTheFlag) {
  const Dashboard page(options(), run(), TimePoint{1h});
  Dashboard::Options how = options();
  how.at = parse_address(page.url().substr(7));
  try {
    const Dashboard second(how, run(), TimePoint{1h});
    FAIL() << "it listens";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("--dashboard 127.0.0.1:"));
  }
}

}  // namespace
}  // namespace paceline
