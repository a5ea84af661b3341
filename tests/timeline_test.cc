// A run's timeline, as Perfetto gets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using Json = nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAre;

constexpr double kRounded = 0.0011;  // microseconds; the file has three digits of them

class TimelineOfARun : public ::testing::Test {
 protected:
  // Returns the arguments that train a small mlp, with a timeline of each task's own steps 5, 6
  // and 7.
  std::vector<std::string> arguments(const std::vector<std::string>& flags) const {
    std::vector<std::string> all = {"train", "mlp",        "--hidden", "8", "--timeline-steps",
                                    "5:8",   "--timeline", path()};
    all.insert(all.end(), flags.begin(), flags.end());
    return all;
  }
  std::string path() const { return folder_.path("t.json"); }
  void train(std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--steps", "60"});
    const Finished run = run_paceline(arguments(flags));
    ASSERT_EQ(run.status, 0) << run.output;
    read();
  }
  void read() {
    std::ifstream file(path());
    events_ = Json::parse(file).at("traceEvents");
    expect_that_viewers_take_it();
  }
  // Expects what Perfetto needs of the trace event format: names of all processes and threads, and
  // events of a thread that lie in one another or apart.
  void expect_that_viewers_take_it() const {
    std::set<std::pair<int, int>> named;
    std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> spans;
    for (const Json& event : events_) {
      const std::pair<int, int> thread(event.at("pid").get<int>(), event.at("tid").get<int>());
      EXPECT_FALSE(event.at("name").get<std::string>().empty());
      if (event.at("ph") == "M") {
        if (event["name"] == "thread_name") named.insert(thread);
        continue;
      }
      ASSERT_EQ(event.at("ph"), "X") << event;
      const double begin = event.at("ts").get<double>(), duration = event.at("dur").get<double>();
      EXPECT_GE(begin, 0) << event;
      EXPECT_GE(duration, 0) << event;
      spans[thread].emplace_back(begin, -duration);  // a longer one sorts before a shorter one
    }
    for (auto& [thread, events] : spans) {
      EXPECT_TRUE(named.contains(thread)) << thread.second;
      std::ranges::sort(events);
      std::vector<double> ends;  // the ends of events that are open
      for (const auto& [begin, minus_duration] : events) {
        while (!ends.empty() && ends.back() <= begin + kRounded) ends.pop_back();
        ends.push_back(begin - minus_duration);
        if (ends.size() == 1) continue;
        EXPECT_LE(ends.back(), ends[ends.size() - 2] + kRounded);
      }
    }
  }
  // Returns the pids of the tasks by process name.
  std::map<std::string, int> tasks() const {
    std::map<std::string, int> pids;
    for (const Json& event : events_) {
      if (event["name"] == "process_name") pids[event["args"]["name"]] = event["pid"];
    }
    return pids;
  }
  // The names of a task's events of a category.
  std::set<std::string> names(int pid, const std::string& category) const {
    std::set<std::string> names;
    for (const Json& event : events_) {
      if (event["ph"] != "X" || event["pid"] != pid || event["cat"] != category) continue;
      names.insert(event["name"]);
    }
    return names;
  }
  // The names of the task's rules that were applied while one of its kernels ran.
  std::set<std::string> rules_within_kernels(int pid) const {
    const auto begin = [](const Json& event) { return event["ts"].get<double>(); };
    const auto end = [&](const Json& event) { return begin(event) + event["dur"].get<double>(); };
    const auto is = [&](const Json& event, const char* category) {
      return event["ph"] == "X" && event["pid"] == pid && event["cat"] == category;
    };
    std::set<std::string> names;
    for (const Json& rule : events_) {
      if (!is(rule, "rule")) continue;
      const bool within = std::ranges::any_of(events_, [&](const Json& kernel) {
        return is(kernel, "kernel") && begin(kernel) <= begin(rule) + kRounded &&
               end(rule) <= end(kernel) + kRounded;
      });
      if (within) names.insert(rule["name"]);
    }
    return names;
  }

  const TemporaryFolder folder_;
  Json events_;
};

TEST_F(TimelineOfARun, ShowsTheStepsOfOneProcess) {
  train({"--no-fused-update"});
  ASSERT_EQ(tasks().size(), 1U);
  const int pid = tasks().at("worker:0");
  EXPECT_THAT(names(pid, "step"), IsSupersetOf({"step", "input", "begin_step", "end_step",
                                                "wait for the global step"}));
  EXPECT_THAT(names(pid, "kernel"), Contains("matmul"));
  EXPECT_THAT(names(pid, "need"), Contains("need layer1/w"));
  EXPECT_THAT(names(pid, "ready"), Contains("ready layer1/w"));
  EXPECT_THAT(names(pid, "rule"), Contains("adam layer1/w"));
  std::set<int> steps;
  std::set<std::string> threads;
  for (const Json& event : events_) {
    if (event["ph"] == "X") steps.insert(event["args"]["step"].get<int>());
    if (event["name"] == "thread_name") threads.insert(event["args"]["name"]);
    if (event["name"] != "matmul") continue;
    EXPECT_GT(event["args"]["bytes"], 0);
    EXPECT_THAT(event["args"]["inputs"].get<std::string>(), ::testing::StartsWith("float32 ("));
  }
  EXPECT_THAT(steps, ElementsAre(5, 6, 7));
  EXPECT_THAT(threads, Contains("step"));
}

TEST_F(TimelineOfARun, ShowsRulesThatAreFused) {
  // The variable layer2/w has 4 M elements, which is enough for its rule to be fused.
  const std::vector<std::string> large = {"--hidden", "2048", "--batch",   "8",
                                          "--steps",  "12",   "--threads", "2"};
  train(large);
  EXPECT_THAT(rules_within_kernels(tasks().at("worker:0")), ElementsAre("adam layer2/w"));
  std::vector<std::string> whole = large;
  whole.emplace_back("--no-fused-update");
  train(whole);
  EXPECT_THAT(rules_within_kernels(tasks().at("worker:0")), IsEmpty());
}

TEST_F(TimelineOfARun, PutsAllTasksIntoOneFile) {
  train_until_all_have_stepped(arguments({"--ps", "1", "--workers", "2", "--threads", "1"}), 2);
  read();
  const auto pids = tasks();
  std::vector<std::string> tasks_there;
  tasks_there.reserve(pids.size());
  for (const auto& [task, pid] : pids) tasks_there.push_back(task);
  ASSERT_THAT(tasks_there, UnorderedElementsAre("ps:0", "worker:0", "worker:1"));
  for (const char* worker : {"worker:0", "worker:1"}) {
    EXPECT_THAT(names(pids.at(worker), "kernel"), Contains("matmul"));
    EXPECT_THAT(names(pids.at(worker), "frame"),
                IsSupersetOf({"send step_begin", "send step_end", "receive step_done"}));
  }
  EXPECT_THAT(names(pids.at("ps:0"), "frame"),
              IsSupersetOf({"receive step_end", "send step_done"}));
  EXPECT_THAT(names(pids.at("ps:0"), "rule"), Contains("adam layer1/w"));
}

}  // namespace
}  // namespace paceline::testing
