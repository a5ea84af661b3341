#include "trace/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "paceline/error.h"
#include "trace/task_timeline.h"

namespace paceline {
namespace {

using Json = nlohmann::json;
using std::chrono::microseconds;

class TimelineTest : public ::testing::Test {
 protected:
  TimelineTest() { std::filesystem::create_directories(folder_); }
  ~TimelineTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  static Json read(const std::string& path) {
    std::ifstream file(path);
    return Json::parse(file).at("traceEvents");
  }
  static TimePoint at(int time) { return TimePoint(microseconds(time)); }
  static Json named(const Json& events, const std::string& name) {
    Json found = Json::array();
    for (const Json& event : events) {
      if (event.at("name") == name) found.push_back(event);
    }
    return found;
  }

  const std::string folder_ =
      ::testing::TempDir() + "paceline-timeline-" + std::to_string(getpid());
};

TEST_F(TimelineTest, RecordsTheStepsThatWereAskedFor) {
  Timeline timeline(2, 4);
  std::vector<bool> recorded;
  for (int step = 0; step < 6; ++step) {
    timeline.begin_step(step);
    recorded.push_back(timeline.recording());
  }
  EXPECT_EQ(recorded, (std::vector<bool>{false, false, true, true, false, false}));
  timeline.begin_step(3);  // of a worker that is behind
  EXPECT_FALSE(timeline.recording());
}

TEST_F(TimelineTest, RecordsForTheSlowest) {
  Timeline timeline(2, 4);
  timeline.begin_step(3);
  timeline.hold();
  timeline.begin_step(4);
  EXPECT_TRUE(timeline.recording());
  timeline.let_go();
  EXPECT_FALSE(timeline.recording());
}

TEST_F(TimelineTest, KeepsWhatThreadsAdd) {
  constexpr int kThreads = 4, kEach = 500;
  Timeline timeline(0, 1, 1000);
  timeline.begin_step(0);
  const TimelineLabel* label = timeline.label({"matmul", "kernel", {}});
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < kEach; ++k) timeline.add(label, at(k), at(k + 1));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(timeline.events().size(), 1000U);
  EXPECT_EQ(timeline.dropped(), 1000U);
}

TEST_F(TimelineTest, HasPlacesForItsSteps) {
  constexpr int kEvents = 20'000;
  Timeline timeline(3, 5);
  const TimelineLabel* label = timeline.label({"a", "kernel", {}});
  for (int i = 0; i < kEvents; ++i) timeline.add(label, at(i), at(i + 1));
  EXPECT_EQ(timeline.events().size(), 2 * 8192U);
  EXPECT_EQ(timeline.dropped(), kEvents - 2 * 8192U);
}

TEST_F(TimelineTest, AScopeIsOneEvent) {
  Timeline timeline(1, 2);
  const TimelineLabel* label = timeline.label({"apply", "rule", {}});
  { const TimelineScope nobody(nullptr, label); }
  { const TimelineScope early(&timeline, label); }
  timeline.begin_step(1);
  { const TimelineScope scope(&timeline, label, 12); }
  const auto events = timeline.events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].label, label);
  EXPECT_EQ(events[0].bytes, 12);
  EXPECT_EQ(events[0].step, 1);
  EXPECT_LE(events[0].begin, events[0].end);
}

TEST_F(TimelineTest, IsWrittenAsATrace) {
  Timeline timeline(7, 8, 2);
  timeline.begin_step(7);
  timeline.name_thread("step");
  const TimelineLabel* matmul =
      timeline.label({"matmul", "kernel", {{"node", "a \"quoted\"\nname"}}});
  timeline.add(matmul, at(30), at(42), 256);
  timeline.add(timeline.label({"need w", "need", {}}), at(10), at(20));
  timeline.add(matmul, at(50), at(60));  // finds no place
  write_timeline(path("t.json"), timeline, "worker:1");

  const Json events = read(path("t.json"));
  EXPECT_EQ(named(events, "process_name")[0]["args"]["name"], "worker:1");
  EXPECT_EQ(named(events, "process_labels")[0]["args"]["labels"], "1 more events found no place");
  EXPECT_EQ(named(events, "thread_name")[0]["args"]["name"], "step");
  const Json kernel = named(events, "matmul").at(0);
  EXPECT_EQ(kernel["ph"], "X");
  EXPECT_EQ(kernel["cat"], "kernel");
  EXPECT_EQ(kernel["pid"], getpid());
  EXPECT_EQ(kernel["ts"], 30.0);
  EXPECT_EQ(kernel["dur"], 12.0);
  EXPECT_EQ(kernel["args"]["step"], 7);
  EXPECT_EQ(kernel["args"]["bytes"], 256);
  EXPECT_EQ(kernel["args"]["node"], "a \"quoted\"\nname");
  EXPECT_EQ(events.back(), kernel);  // in the order of time
}

TEST_F(TimelineTest, NamesThreadsByWhatTheyDid) {
  Timeline timeline(0, 1);
  timeline.begin_step(0);
  const TimelineLabel* frame = timeline.label({"receive chunk", "frame", {}});
  const TimelineLabel* apply = timeline.label({"sgd w", "rule", {}});
  std::thread([&] {
    timeline.add(apply, at(1), at(2));
    timeline.add(frame, at(3), at(4));
  }).join();
  timeline.add(apply, at(1), at(2));
  write_timeline(path("t.json"), timeline, "ps:0");
  std::vector<std::string> names;
  for (const Json& name : named(read(path("t.json")), "thread_name")) {
    names.push_back(name["args"]["name"]);
  }
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("link", "pool"));
}

TEST_F(TimelineTest, SaysWhereItCannotBeWritten) {
  const Timeline timeline(0, 1, 1);
  EXPECT_THROW(write_timeline(folder_ + "/no/t.json", timeline, "worker:0"), Error);
}

}  // namespace
}  // namespace paceline
