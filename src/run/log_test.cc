#include "run/log.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <array>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace paceline {
namespace {

using testing::MatchesRegex;

constexpr const char* kTime = "20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9:]{8}\\.[0-9]{3}Z";

/// A pipe, and the lines that were written to it.
class Written {
 public:
  Written() { EXPECT_EQ(pipe2(ends_.data(), O_CLOEXEC), 0); }
  ~Written() {
    close(ends_[0]);
    if (ends_[1] >= 0) close(ends_[1]);
  }
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;

  int fd() const { return ends_[1]; }
  std::vector<std::string> lines() {
    close(ends_[1]);
    ends_[1] = -1;
    std::string text;
    std::array<char, 4096> piece;
    for (ssize_t got; (got = read(ends_[0], piece.data(), piece.size())) > 0;) {
      text.append(piece.data(), std::size_t(got));
    }
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

TEST(Log, TextHasTimeLevelAndTask) {
  Written written;
  const Log log({.level = LogLevel::kInfo, .json = false, .task = "ps:0", .fd = written.fd()});
  log.debug("not this");
  log.info("worker:1 joined");
  log.warning("lost {} worker:1\nsecond line");
  const auto lines = written.lines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0], MatchesRegex(std::string(kTime) + " info ps:0: worker:1 joined"));
  EXPECT_THAT(lines[1],
              MatchesRegex(std::string(kTime) + " warning ps:0: lost \\{\\} worker:1 second line"));
}

TEST(Log, TextGivesATerminalNoCommands) {
  Written written;
  const Log log({.level = LogLevel::kInfo, .json = false, .task = "", .fd = written.fd()});
  log.info("refused \x1b]0;title\x07 from b");
  const auto lines = written.lines();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], MatchesRegex(std::string(kTime) + " info refused \\?\\]0;title\\? from b"));
}

TEST(Log, JsonLinesAreObjects) {
  Written written;
  const Log log({.level = LogLevel::kDebug, .json = true, .task = "ps:0", .fd = written.fd()});
  log.debug("a \"quoted\" name\nof two lines");
  log.error("no UTF-8: \xff");
  const auto lines = written.lines();
  ASSERT_EQ(lines.size(), 2U);
  const auto first = nlohmann::json::parse(lines[0]);
  EXPECT_THAT(first["time"].get<std::string>(), MatchesRegex(kTime));
  EXPECT_EQ(first["level"], "debug");
  EXPECT_EQ(first["task"], "ps:0");
  EXPECT_EQ(first["message"], "a \"quoted\" name\nof two lines");
  EXPECT_EQ(nlohmann::json::parse(lines[1])["level"], "error");
}

TEST(Log, IsNamedAfterTheProcess) {
  Cluster cluster;
  cluster.process = Cluster::Process::kEvaluator;
  cluster.task.index = 1;
  EXPECT_EQ(log_options(cluster, {}).task, "evaluator:1");
  cluster.process = Cluster::Process::kLauncher;
  EXPECT_EQ(log_options(cluster, {}).task, "launcher");
  cluster.process = Cluster::Process::kTask;
  EXPECT_EQ(log_options(cluster, {}).task, "worker:1");
}

TEST(Log, LinesOfSeveralTasksDoNotMix) {
  Written written;
  constexpr int kTasks = 4, kLines = 25;  // they fit the pipe
  std::vector<std::thread> threads;
  threads.reserve(kTasks);
  for (int task = 0; task < kTasks; ++task) {
    threads.emplace_back([&, task] {
      const Log log({.level = LogLevel::kInfo,
                     .json = false,
                     .task = "worker:" + std::to_string(task),
                     .fd = written.fd()});
      for (int i = 0; i < kLines; ++i) log.info(std::string(400, char('a' + task)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto lines = written.lines();
  EXPECT_EQ(lines.size(), std::size_t(kTasks * kLines));
  const std::string expected = fmt::format("{} info worker:[0-3]: (a+|b+|c+|d+)", kTime);
  for (const std::string& line : lines) EXPECT_THAT(line, MatchesRegex(expected));
}

TEST(LogMemory, TheLastLinesAreRememberedWhateverTheLevel) {
  const Log log({.level = LogLevel::kError, .json = false, .task = "", .fd = 2});
  for (int i = 0; i < 20; ++i) log.info("line " + std::to_string(i));
  log.debug("not for users");
  log.remember("printed\x1b elsewhere");
  ASSERT_FALSE(log.remembered().empty());
  EXPECT_EQ(log.remembered().back(), "printed? elsewhere");
  EXPECT_EQ(*(log.remembered().end() - 2), "line 19");
  EXPECT_LE(log.remembered().size(), 12u);
}

}  // namespace
}  // namespace paceline
