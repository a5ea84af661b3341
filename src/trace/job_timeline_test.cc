#include "trace/job_timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/temporary_folder.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr std::int64_t kMicrosecond = 1000;

// Writes timelines by hand; times are microseconds.
class TaskMaker {
 public:
  explicit TaskMaker(const std::string& name, const std::string& clock = "one") {
    task_.task = name;
    task_.machine = "machine";
    task_.clock = clock;
  }
  TaskMaker& add(const std::string& category, const std::string& name, int begin, int end,
                 int thread = 0, std::vector<std::pair<std::string, std::string>> arguments = {}) {
    while (int(task_.threads.size()) <= thread) {
      task_.threads.push_back({pid_t(task_.threads.size()) + 100, "thread"});
    }
    task_.labels.push_back({name, category, std::move(arguments)});
    task_.spans.push_back({.begin = begin * kMicrosecond,
                           .end = end * kMicrosecond,
                           .label = task_.labels.size() - 1,
                           .thread = std::size_t(thread)});
    return *this;
  }
  TaskMaker& frame(const std::string& name, const std::string& peer, int begin, int end,
                   FrameMark mark, int thread = 0) {
    add("frame", name, begin, end, thread, {{"peer", peer}});
    task_.spans.back().frame = mark;
    return *this;
  }
  TaskMaker& round_trip(const std::string& to, ClockSample sample) {
    task_.clock_samples[to].push_back(sample);
    return *this;
  }
  // Returns the timeline, ordered by time, as recorded by a clock that is ahead of the test's.
  TaskTimeline make(Duration ahead = Duration()) const {
    TaskTimeline task = task_;
    std::ranges::stable_sort(
        task.spans, {}, [](const TimelineSpan& span) { return std::pair(span.begin, -span.end); });
    for (TimelineSpan& span : task.spans) {
      span.begin += ahead.count();
      span.end += ahead.count();
    }
    return task;
  }

 private:
  TaskTimeline task_;
};

constexpr Duration kAhead = std::chrono::seconds(1000);

// A worker that computes, pushes, and waits for the values that the ps sends back.
TaskMaker worker() {
  TaskMaker worker("worker:0");
  worker.add("step", "step", 0, 100)
      .add("kernel", "matmul", 0, 40)
      .add("ready", "ready w", 40, 50, 0, {{"variable", "w"}})
      .frame("send chunk", "ps:0", 42, 44, {7, 0, 3})
      .add("need", "need w", 50, 95, 0, {{"variable", "w"}})
      .frame("receive values", "ps:0", 90, 93, {7, 0, 3}, 1);
  return worker;
}
TaskMaker ps(const std::string& clock = "one") {
  TaskMaker ps("ps:0", clock);
  ps.frame("receive chunk", "worker:0", 60, 80, {7, 0, 3})
      .add("rule", "adam w", 61, 75, 0, {{"variable", "w"}, {"piece", "7"}})
      .frame("send values", "worker:0", 76, 78, {7, 0, 3});
  return ps;
}

std::vector<std::string> texts_of(const std::vector<PathPart>& parts, std::int64_t start) {
  std::vector<std::string> texts;
  texts.reserve(parts.size());
  for (const PathPart& part : parts) {
    texts.push_back(part.what + " " + std::to_string((part.begin - start) / kMicrosecond) + "-" +
                    std::to_string((part.end - start) / kMicrosecond));
  }
  return texts;
}

TEST(JobTimeline, TasksOfOneClockAreTakenAsTheyAre) {
  const JobTimeline job = merge_timelines({ps().make(), worker().make()});
  EXPECT_EQ(job.tasks[0].task, "worker:0");
  EXPECT_TRUE(job.clocks[1].is_same);
  EXPECT_EQ(job.clocks[1].line.uncertainty, Duration());
  EXPECT_EQ(job.tasks[1].spans.front().begin, 60 * kMicrosecond);
  EXPECT_THAT(summary_of(job), HasSubstr("All tasks read one clock."));
}

TEST(JobTimeline, ClocksAreAlignedByRoundTrips) {
  TaskMaker asks = worker();
  asks.round_trip("ps:0", {TimePoint(), kAhead + Duration(4000), Duration(9000)})
      .round_trip("ps:0", {TimePoint(Duration(1)), kAhead + Duration(90000), Duration(99000)});
  const JobTimeline job = merge_timelines({asks.make(), ps("other").make(kAhead)});
  EXPECT_EQ(job.tasks[1].spans.front().begin, 60 * kMicrosecond - 4000);
  EXPECT_EQ(job.clocks[1].line.uncertainty, Duration(9000));
  EXPECT_THAT(summary_of(job),
              HasSubstr("ps:0: its clock is 1000.000004 s ahead of that of worker:0, ± 9.0 µs"));
}

TEST(JobTimeline, AClockGoesOverOtherTasks) {
  TaskMaker asks = worker();
  asks.round_trip("ps:0", {TimePoint(), kAhead, Duration(9000)});
  TaskMaker second("worker:1", "third");
  second.add("kernel", "matmul", 10, 20)
      .round_trip("ps:0", {TimePoint(), kAhead - 2 * kAhead, Duration(5000)});
  const JobTimeline job =
      merge_timelines({asks.make(), second.make(2 * kAhead), ps("other").make(kAhead)});
  EXPECT_EQ(job.tasks[1].task, "worker:1");
  EXPECT_EQ(job.tasks[1].spans.front().begin, 10 * kMicrosecond);
  EXPECT_EQ(job.clocks[1].line.uncertainty, Duration(14000));
}

TEST(JobTimeline, SaysWhichClockIsNotKnown) {
  const JobTimeline job = merge_timelines({worker().make(), ps("other").make(kAhead)});
  EXPECT_FALSE(job.clocks[1].is_known);
  EXPECT_THAT(summary_of(job), HasSubstr("ps:0: no round trip leads to worker:0's clock"));
}

// By the round trip alone, the frame would arrive at 40 µs, 2 µs before it was sent.
TEST(JobTimeline, FramesArriveAfterTheyWereSent) {
  TaskMaker asks = worker();
  asks.round_trip("ps:0", {TimePoint(), kAhead + Duration(20000), Duration(20000)});
  const JobTimeline job = merge_timelines({asks.make(), ps("other").make(kAhead)});
  EXPECT_EQ(job.tasks[1].spans.front().begin, 42 * kMicrosecond);
  EXPECT_EQ(job.clocks[1].line.uncertainty, Duration(22000));
}

TEST(JobTimeline, ArrowsLeadFromAPushToTheNeedOfItsValues) {
  const JobTimeline job = merge_timelines({worker().make(), ps().make()});
  ASSERT_EQ(job.arrows.size(), 1U);
  std::vector<std::string> ends;
  for (const TimelineArrow::End& end : job.arrows[0].ends) {
    const TaskTimeline& task = job.tasks[end.place.task];
    ends.push_back(task.task + " " + task.label_of(task.spans[end.place.span]).name + " " +
                   std::to_string(end.at / kMicrosecond));
  }
  EXPECT_THAT(ends, ElementsAre("worker:0 send chunk 42", "ps:0 adam w 61",
                                "worker:0 receive values 90", "worker:0 need w 90"));
}

TEST(JobTimeline, ArrowsOfAnAllReduceLeadToItsCommit) {
  TaskMaker first("worker:0"), second("worker:1");
  second.frame("send sums_whole", "worker:0", 10, 11, {0, 0, 3})
      .frame("receive commit", "worker:0", 30, 31, {0, 0, 3});
  first.frame("receive sums_whole", "worker:1", 20, 25, {0, 0, 3})
      .frame("send commit", "worker:1", 22, 23, {0, 0, 3});
  const JobTimeline job = merge_timelines({first.make(), second.make()});
  ASSERT_EQ(job.arrows.size(), 2U);
  EXPECT_EQ(job.arrows[0].name, "sums_whole");
  EXPECT_EQ(job.arrows[1].name, "commit");
}

TEST(CriticalPath, GoesOverTheTaskThatWasWaitedFor) {
  const JobTimeline job = merge_timelines({worker().make(), ps().make()});
  ASSERT_EQ(job.steps.size(), 1U);
  EXPECT_THAT(
      texts_of(job.steps[0].path, 0),
      ElementsAre("worker:0 kernels 0-40", "worker:0 sends 40-42", "link worker:0 to ps:0 42-60",
                  "ps:0 receives 60-61", "ps:0 applies rules 61-75", "ps:0 receives 75-76",
                  "link ps:0 to worker:0 76-90", "worker:0 receives 90-93", "worker:0 waits 93-95",
                  "worker:0 between kernels 95-100"));
  EXPECT_THAT(summary_of(job), HasSubstr("Critical path of the steps: worker:0 kernels 40%"));
}

TEST(CriticalPath, StaysWhereAFrameHadToWaitForTheThread) {
  TaskMaker busy("ps:0");
  busy.frame("receive chunk", "worker:1", 20, 59, {7, 0, 9})
      .add("rule", "adam w", 20, 59, 0, {{"piece", "7"}});
  busy.frame("receive chunk", "worker:0", 60, 80, {7, 0, 3})
      .frame("send values", "worker:0", 76, 78, {7, 0, 3});
  const JobTimeline job = merge_timelines({worker().make(), busy.make()});
  EXPECT_THAT(texts_of(job.steps[0].path, 0), ::testing::Contains("ps:0 applies rules 20-59"));
}

TEST(CriticalPath, AWaitMayEndBeforeItsFrameIsHandled) {
  TaskMaker woken("worker:0");
  woken.add("step", "step", 0, 100)
      .frame("send chunk", "ps:0", 42, 44, {7, 0, 3})
      .add("step", "wait for the global step", 50, 92)
      .frame("receive values", "ps:0", 90, 93, {7, 0, 3}, 1);
  const JobTimeline job = merge_timelines({woken.make(), ps().make()});
  EXPECT_THAT(texts_of(job.steps[0].path, 0),
              ::testing::IsSupersetOf({"ps:0 applies rules 61-75", "worker:0 receives 90-92"}));
}

// The call that hands over a contribution waits for the device that computes it.
TEST(CriticalPath, AWorkerThatWaitsForItsDeviceRunsKernels) {
  TaskMaker queued("worker:0");
  queued.add("step", "step", 0, 100)
      .add("kernel", "matmul", 1, 2)
      .add("ready", "ready w", 2, 90)
      .add("device", "wait for the device", 3, 85)
      .frame("send chunk", "ps:0", 87, 88, {7, 0, 3});
  const JobTimeline job = merge_timelines({queued.make()});
  EXPECT_THAT(texts_of(job.steps[0].path, 0),
              ElementsAre("worker:0 between kernels 0-1", "worker:0 kernels 1-2",
                          "worker:0 sends 2-3", "worker:0 kernels 3-85", "worker:0 sends 85-90",
                          "worker:0 between kernels 90-100"));
}

// Each tower makes its step on its own thread. The slowest tower is on the path.
TEST(CriticalPath, AWorkerThatWaitsForItsTowersGoesOnWithTheSlowest) {
  TaskMaker towers("worker:0");
  towers.add("step", "step", 0, 100).add("step", "wait for the towers", 5, 95);
  towers.add("step", "tower", 10, 60, 1).add("kernel", "matmul", 12, 58, 1);
  towers.add("step", "tower", 10, 90, 2).add("kernel", "matmul", 15, 80, 2);
  towers.add("on device", "matmul", 20, 94, 3);  // no thread goes on because of it
  const JobTimeline job = merge_timelines({towers.make()});
  EXPECT_THAT(texts_of(job.steps[0].path, 0),
              ElementsAre("worker:0 other 0-10", "worker:0 between kernels 10-15",
                          "worker:0 kernels 15-80", "worker:0 between kernels 80-90",
                          "worker:0 other 90-95", "worker:0 between kernels 95-100"));
}

TEST(CriticalPath, AStepThatWaitedForNobodyIsItsOwn) {
  TaskMaker alone("worker:0");
  alone.add("step", "step", 10, 60).add("need", "need w", 12, 20).add("kernel", "matmul", 20, 50);
  const JobTimeline job = merge_timelines({alone.make()});
  EXPECT_THAT(texts_of(job.steps[0].path, 0),
              ElementsAre("worker:0 between kernels 10-12", "worker:0 waits 12-20",
                          "worker:0 kernels 20-50", "worker:0 between kernels 50-60"));
}

class JobTimelineFile : public ::testing::Test {
 protected:
  static Json read(const std::string& path) {
    std::ifstream file(path);
    return Json::parse(file).at("traceEvents");
  }
  static std::string text_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path(name)) << text;
  }
  std::string refusal(const std::string& path) const {
    try {
      merge_timeline_files({path}, folder_.path("all"));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  std::string written(const std::string& task) const {
    Timeline timeline(0, 1);
    timeline.begin_step(0);
    timeline.add_clock_sample("ps:0", {TimePoint(Duration(5)), Duration(-6), Duration(7)});
    timeline.name_peer("host:1", "ps:0");
    timeline.add(timeline.label({"send chunk", "frame", {{"peer", "host:1"}}}),
                 TimePoint(Duration(1234)), TimePoint(Duration(2345)), 12, {3, 4, 5});
    std::string path = folder_.path(task + ".json");
    write_timeline(path, timeline, task);
    return path;
  }

  const TemporaryFolder folder_;
};

TEST_F(JobTimelineFile, ATaskIsReadAsItWasWritten) {
  const TaskTimeline task = read_task_timeline(written("worker:1"));
  EXPECT_EQ(task.task, "worker:1");
  EXPECT_FALSE(task.machine.empty());
  EXPECT_THAT(task.clock_samples.at("ps:0"),
              ElementsAre(ClockSample{TimePoint(Duration(5)), Duration(-6), Duration(7)}));
  ASSERT_EQ(task.spans.size(), 1U);
  const TimelineSpan& span = task.spans.front();
  EXPECT_EQ(span.begin, 1234);
  EXPECT_EQ(span.end, 2345);
  EXPECT_EQ(span.bytes, 12);
  EXPECT_EQ(span.frame, (FrameMark{3, 4, 5}));
  EXPECT_EQ(argument_of(task.label_of(span), "peer"), "ps:0");
  EXPECT_EQ(task.threads[span.thread].name, "link");
}

TEST_F(JobTimelineFile, WhatIsNoPartIsRefusedByName) {
  const std::string whole = text_of(written("worker:0"));
  write("torn", whole.substr(0, whole.size() - 5));
  EXPECT_THAT(refusal(folder_.path("torn")), AllOf(HasSubstr("torn"), HasSubstr("is not whole")));
  write("half", whole.substr(0, whole.size() / 2));
  EXPECT_THAT(refusal(folder_.path("half")), HasSubstr("half"));
  write("other", "{}");
  EXPECT_THAT(refusal(folder_.path("other")), HasSubstr("other is no timeline of a task"));
  EXPECT_THAT(refusal(folder_.path("none")), HasSubstr("there is no timeline at"));
  merge_timeline_files({folder_.path("worker:0.json")}, folder_.path("job"));
  EXPECT_THAT(refusal(folder_.path("job")), HasSubstr("job is no timeline of one task"));
}

TEST_F(JobTimelineFile, HasAProcessForEachTaskAndArrowsAndThePath) {
  const JobTimeline job = merge_timelines({worker().make(), ps().make()});
  write_job_timeline(folder_.path("job"), job);
  std::map<std::string, int> processes;
  std::string phases;
  std::vector<std::string> path;
  for (const Json& event : read(folder_.path("job"))) {
    if (event["name"] == "process_name") processes[event["args"]["name"]] = event["pid"];
    if (event.value("cat", "") == "arrow") phases += event["ph"].get<std::string>();
    if (event.value("cat", "") == "path") path.push_back(event["name"]);
    if (event["name"] == "matmul") {
      EXPECT_EQ(event["ts"], 0);
    }
  }
  EXPECT_EQ(processes.size(), 3U);
  EXPECT_EQ(phases, "sttf");
  EXPECT_EQ(path.size(), 10U);
}

TEST_F(JobTimelineFile, IsNoLargerThanItMayBe) {
  TaskMaker many("worker:0");
  for (int i = 0; i < 1000; ++i) {
    many.add("step", "step", i * 100, i * 100 + 99)
        .add("kernel", "matmul", i * 100, i * 100 + 1 + i % 50);
  }
  const JobTimeline job = merge_timelines({many.make()});
  write_job_timeline(folder_.path("all"), job);
  const std::size_t all = std::filesystem::file_size(folder_.path("all"));
  write_job_timeline(folder_.path("less"), job, all * 9 / 10);
  const std::size_t less = std::filesystem::file_size(folder_.path("less"));
  EXPECT_LE(less, all * 9 / 10 + 100);
  EXPECT_THAT(text_of(folder_.path("less")), HasSubstr("without spans of less than"));
  int steps = 0;
  for (const Json& event : read(folder_.path("less"))) {
    steps += event.value("cat", "") == "step" ? 1 : 0;
  }
  EXPECT_EQ(steps, 1000);
}

}  // namespace
}  // namespace paceline
