// Tests a run's timeline, as Perfetto gets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <list>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using Json = nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAre;

constexpr const char* kPath = "critical path";
constexpr double kRounded = 0.0011;  // in microseconds: the file rounds to three decimals

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
    const Json root = Json::parse(file);
    EXPECT_EQ(root.at("displayTimeUnit"), "ms");
    events_ = root.at("traceEvents");
    expect_that_viewers_take_it();
  }
  // Expects what Perfetto needs of the trace event format: names of all processes and threads, and
  // events of a thread that either nest or do not overlap.
  void expect_that_viewers_take_it() const {
    std::set<std::pair<int, int>> named;
    std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> spans;
    for (const Json& event : events_) {
      const std::pair<int, int> thread(event.at("pid").get<int>(), event.at("tid").get<int>());
      EXPECT_FALSE(event.at("name").get<std::string>().empty());
      if (event.at("ph") == "M") {
        EXPECT_TRUE(event.at("args").is_object()) << event;
        if (event["name"] == "thread_name") named.insert(thread);
        continue;
      }
      if (event.value("cat", "") == "arrow") continue;
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
      if (event["name"] != "process_name" || event["args"]["name"] == kPath) continue;
      pids[event["args"]["name"]] = event["pid"];
    }
    return pids;
  }
  // Returns the names of a task's events in a category.
  std::set<std::string> names(int pid, const std::string& category) const {
    std::set<std::string> names;
    for (const Json& event : events_) {
      if (event["ph"] != "X" || event["pid"] != pid || event["cat"] != category) continue;
      names.insert(event["name"]);
    }
    return names;
  }
  // Returns the names of the task's rules that were applied while one of its kernels ran.
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

  // Expects that arrows go forward in time, from one span to another. Returns their names and the
  // categories of these spans: "push: frame > rule > frame > need".
  std::set<std::string> arrows() const {
    std::map<int, std::vector<Json>> ends;
    for (const Json& event : events_) {
      if (event.value("cat", "") == "arrow") ends[event["id"]].push_back(event);
    }
    std::set<std::string> names;
    for (const auto& [id, arrow] : ends) {
      EXPECT_GE(arrow.size(), 2U);
      EXPECT_EQ(arrow.front()["ph"], "s");
      EXPECT_EQ(arrow.back()["bp"], "e") << "else a viewer takes the span that begins next";
      for (std::size_t i = 1; i < arrow.size(); ++i) {
        EXPECT_EQ(arrow[i]["name"], arrow[0]["name"]);
        EXPECT_EQ(arrow[i]["ph"], i + 1 < arrow.size() ? "t" : "f");
        EXPECT_LE(arrow[i - 1]["ts"].get<double>(), arrow[i]["ts"].get<double>() + kRounded);
      }
      std::string way;
      for (const Json& end : arrow) way += (way.empty() ? "" : " > ") + category_at(end);
      names.insert(arrow.front()["name"].get<std::string>() + ": " + way);
    }
    return names;
  }
  // Returns the category of the shortest span in which an arrow has an end.
  std::string category_at(const Json& end) const {
    const Json* shortest = nullptr;
    for (const Json& span : events_) {
      if (span["ph"] != "X" || span["pid"] != end["pid"] || span["tid"] != end["tid"]) continue;
      const double at = end["ts"], begin = span["ts"], duration = span["dur"];
      if (at < begin - kRounded || at > begin + duration + kRounded) continue;
      if (shortest == nullptr || duration < (*shortest)["dur"].get<double>()) shortest = &span;
    }
    EXPECT_NE(shortest, nullptr) << end << " is in no span";
    return shortest == nullptr ? "" : (*shortest)["cat"].get<std::string>();
  }
  // Returns the time that all events of a category take together.
  double time_of(const std::string& category, const std::string& name = "") const {
    double time = 0;
    for (const Json& event : events_) {
      if (event.value("cat", "") != category || (!name.empty() && event["name"] != name)) continue;
      time += event["dur"].get<double>();
    }
    return time;
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
  // The variable layer2/w has 4 M elements, enough for its rule to be fused.
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

// Each row of the critical path shows the steps of one worker, from their begin to their end.
TEST_F(TimelineOfARun, HasArrowsAndTheCriticalPathForEveryWayToTrain) {
  struct Way {
    std::vector<std::string> flags;
    std::string arrow;
  };
  const std::string pulled = "push: frame > rule > frame > need";
  const std::vector<Way> ways = {
      {{"--ps", "1"}, pulled},
      {{"--ps", "2", "--link", "tcp"}, pulled},
      {{"--ps", "1", "--strategy", "ssp", "--link", "tcp"}, pulled},
      {{"--ps", "2", "--strategy", "sync"}, pulled},
      {{"--strategy", "allreduce"}, "commit: frame > frame"},
      {{"--strategy", "allreduce", "--link", "tcp"}, "partial_sum: frame > frame"},
  };
  for (const Way& way : ways) {
    SCOPED_TRACE(way.arrow + " " + way.flags.back());
    train_until_all_have_stepped(arguments(join({way.flags, {"--workers", "2", "--threads", "1"}})),
                                 2);
    read();
    EXPECT_THAT(arrows(), Contains(HasSubstr(way.arrow)));
    EXPECT_NEAR(time_of("path"), time_of("step", "step"), 0.1);
  }
}

TEST_F(TimelineOfARun, KernelsOfASimulatedDeviceAreOnThePath) {
  const std::vector<std::vector<std::string>> ways = {
      {"--ps", "1", "--workers", "1"}, {"--towers", "2", "--ps", "1", "--workers", "1"}};
  for (const std::vector<std::string>& way : ways) {
    SCOPED_TRACE(way.front());
    train(join({{"--device", "sim", "--sim-step-ms", "20"}, way}));
    double kernels = 0;
    int steps = 0;
    for (const Json& event : events_) {
      if (event.value("cat", "") == "step" && event["name"] == "step") ++steps;
      if (event.value("cat", "") == "path" && event["name"] == "worker:0 kernels") {
        kernels += event["dur"].get<double>();
      }
    }
    // The device computes for 20,000 us in a step. The test asks for a tenth of that, since a busy
    // machine may put other activities on the path.
    EXPECT_GT(kernels, 2000.0 * steps);
  }
}

// Runs a task in its own time namespace, in which the clock is ahead by a known time.
class ShiftedClock : public ::testing::Test {
 protected:
  static constexpr double kAheadMicroseconds = 1e9;

  void SetUp() override {
    if (Process({"unshare", "-T", "--monotonic", "1000", "true"})
            .wait_exit(std::chrono::seconds(20)) != 0) {
      GTEST_SKIP() << "no time namespace can be made here";
    }
  }
  Words task(const std::string& name, const Words& flags) const {
    return paceline_words(join({{"train", "mlp", "--hidden", "8", "--steps", "40", "--cluster",
                                 spec_, "--task", name, "--out", folder_.path("out")},
                                flags}));
  }
  // Trains with a worker whose clock is ahead, and merges the timelines that the tasks have left.
  Json train(const std::vector<std::string>& servers, const Words& flags) {
    std::list<Process> others;
    for (const std::string& name : servers) others.emplace_back(task(name, flags));
    Process shifted(
        join({{"unshare", "-T", "--monotonic", "1000", "--fork"}, task("worker:1", flags)}));
    EXPECT_EQ(shifted.wait_exit(std::chrono::seconds(300)), 0) << shifted.output();
    for (Process& other : others) {
      EXPECT_EQ(other.wait_exit(std::chrono::seconds(300)), 0) << other.output();
    }
    const Finished merged = run_paceline({"timeline", folder_.path("out")});
    EXPECT_EQ(merged.status, 0) << merged.output;
    EXPECT_THAT(merged.output, ::testing::HasSubstr(" s ahead of that of worker:0, ± "));
    std::ifstream file(folder_.path("out/timeline/timeline.json"));
    return Json::parse(file).at("traceEvents");
  }
  // Expects that the error of each clock is within the bound in the file.
  static void expect_clocks(const Json& events) {
    std::map<int, std::string> tasks;
    for (const Json& event : events) {
      if (event["name"] == "process_name") tasks[event["pid"]] = event["args"]["name"];
    }
    for (const Json& event : events) {
      if (event["name"] != "clock") continue;
      const double truth = tasks[event["pid"]] == "worker:1" ? kAheadMicroseconds : 0;
      const double error = event["args"]["ahead_us"].get<double>() - truth;
      EXPECT_LE(std::abs(error), event["args"]["uncertainty_us"].get<double>() + kRounded)
          << tasks[event["pid"]];
    }
  }
  static void expect_causes_before_effects(const Json& events) {
    std::map<int, double> last;
    int arrows = 0;
    for (const Json& event : events) {
      if (event.value("cat", "") != "arrow") continue;
      ++arrows;
      const double at = event["ts"];
      const auto [before, is_first] = last.emplace(event["id"].get<int>(), at);
      EXPECT_LE(before->second, at + kRounded) << event;
      before->second = at;
    }
    EXPECT_GT(arrows, 0);
  }

  const TemporaryFolder folder_;
  const std::string ps_ = free_address(), first_ = free_address(), second_ = free_address();
  std::string spec_ = "ps=" + ps_ + ";worker=" + first_ + "," + second_;
};

TEST_F(ShiftedClock, IsMeasuredByRoundTripsToThePs) {
  const Json events = train({"ps:0", "worker:0"}, {"--link", "tcp"});
  expect_clocks(events);
  expect_causes_before_effects(events);
}

TEST_F(ShiftedClock, IsMeasuredByRoundTripsInAnAllReduce) {
  spec_ = "worker=" + first_ + "," + second_;
  const Json events = train({"worker:0"}, {"--strategy", "allreduce"});
  expect_clocks(events);
  expect_causes_before_effects(events);
}

TEST(TimelineCommand, NamesTheFileThatIsNoPart) {
  const TemporaryFolder folder;
  const auto told = [&](const Words& arguments) {
    return run_paceline(join({{"timeline"}, arguments})).output;
  };
  EXPECT_THAT(told({folder.path("")}), ::testing::HasSubstr("there is no timeline of a task in"));
  std::ofstream(folder.path("a.json")) << "{}\n";
  EXPECT_THAT(told({folder.path("a.json")}), ::testing::HasSubstr("--out FILE is needed"));
  EXPECT_THAT(told({folder.path("a.json"), "--out", folder.path("b.json")}),
              ::testing::HasSubstr("a.json is no timeline of a task"));
}

TEST(TimelineCommand, SaysWhatIsWrongWithRunsBeforeItReadsThem) {
  const TemporaryFolder folder;
  const std::string part = folder.path("a.json"), out = folder.path("all.json");
  const auto told = [&](const Words& arguments) {
    return run_paceline(join({{"timeline"}, arguments})).output;
  };
  EXPECT_THAT(told({folder.path("none")}), HasSubstr("none: there is no such file or folder"));
  EXPECT_THAT(told({part, "--out", out}), HasSubstr("a.json: there is no such file or folder"));
  std::ofstream(part) << "{}\n";
  EXPECT_THAT(told({part, folder.path("./a.json"), "--out", out}), HasSubstr("is given twice"));
  EXPECT_THAT(told({part, "--out", folder.path("no/all.json")}),
              HasSubstr("all.json: there is no folder"));
  std::filesystem::create_directory(folder.path("timeline"));
  std::ofstream(folder.path("timeline/timeline.json")) << "{}\n";
  EXPECT_THAT(told({folder.path("")}), HasSubstr("the timeline of this run is merged already: "));
}

TEST(TimelineCommand, CountsItsTasks) {
  const TemporaryFolder folder;
  const std::string part = folder.path("one.json");
  ASSERT_EQ(run_paceline({"train", "mlp", "--hidden", "8", "--steps", "20", "--timeline-steps",
                          "5:8", "--timeline", part})
                .status,
            0);
  const Words files = {"timeline", part, "--out", folder.path("all.json")};
  EXPECT_THAT(run_paceline(files).output, HasSubstr("The timeline of 1 task is in "));
}

}  // namespace
}  // namespace paceline::testing
