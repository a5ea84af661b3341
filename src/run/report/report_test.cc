#include "run/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/testing/error_of.h"
#include "paceline/error.h"
#include "run/report/testing/written_report.h"

namespace paceline {
namespace {

using testing::HasSubstr;

TaskReport worker(int index, double rate) {
  TaskReport task;
  task.task = "worker:" + std::to_string(index);
  task.steps = 110;
  task.seconds = 100 / rate;
  task.steps_per_s = rate;
  task.examples_per_s = 400 * rate;
  task.unit = "words";
  task.step_ms_p50 = 1000 / rate;
  task.step_ms_p99 = 1200 / rate;
  task.step_ms_max = 1300 / rate;
  task.share = {{"input", 0.1}, {"compute", 0.7}, {"pull", 0.2}};
  task.hidden_ms = 1.5;
  task.step_sent = 1e5 / 3;
  task.step_received = 7;
  task.copies_ms = 2.0 / 3;
  task.host_ops_ms = 0.25;
  task.staleness_mean = 1.0 / 3;
  task.staleness_p95 = 2;
  task.links = {{.to = "ps:0",
                 .kind = "tcp",
                 .round_trip_us = 41.5,
                 .step_sent = 1e5 / 3,
                 .step_received = 7,
                 .sent = 1e6,
                 .received = std::nullopt,
                 .most = 1.25e8}};
  task.kernels = {{.op = "matmul", .per_step = 6, .ms = 1.0 / 3, .share = 0.75}};
  task.input = {.stages = {{.name = "read", .records = 7, .seconds = 0.1, .records_per_s = 70},
                           {.name = "distort", .records = 7, .seconds = 1.0 / 3},
                           {.name = "prefetch", .records = 6, .fill = 0.5}},
                .records = 6,
                .batches = 2,
                .bad = 1,
                .threads = 1,
                .most_threads = 2,
                .seconds = 1.5,
                .waited = 0.25};
  task.use.cores = 1.75;
  task.use.device_busy = 0.7;
  task.use.sent = 1e6;
  task.use.received = 2e6;
  task.use.disk_written = 1.5;
  task.use.peak_memory = 3e8;
  task.use.seconds = 25.5;
  task.use.pressure = {.queued = 0.25,
                       .waited = 0.125,
                       .machine_cores = 1.5,
                       .major_faults = std::nullopt,
                       .memory_wait = 1e-3,
                       .disk_wait = 2e-3,
                       .stops = {.seconds = 2.5, .longest = 2.25}};
  return task;
}

TaskReport ps() {
  TaskReport task;
  task.task = "ps:0";
  task.steps = 220;
  task.seconds = 10.0;
  task.share = {{"apply", 0.25}, {"queue", 0.5}, {"idle", 0.25}};
  task.kept = {.bytes = 3e7, .largest = "layer2/w", .largest_bytes = 2.5e7};
  return task;
}

Report report_of(const TaskReport& task) {
  Report report;
  report.model = "ptb";
  report.strategy = "async";
  report.accumulate = 4;
  report.towers = 2;
  report.precision = "bfloat16";
  report.tls = "all links";
  report.flags = {{"--steps", "20"}, {"hidden", "64"}};
  report.tasks = {task};
  return report;
}

std::string fault_of(const std::string& json) {
  return error_of(ErrorCode::kDataLoss, [&] { Report::from_json(json); });
}

TEST(Report, SaysWhereAFileIsNoReport) {
  const auto with = [](const std::string& old, const std::string& changed) {
    std::string json = report_of(worker(0, 1)).to_json();
    const std::size_t at = json.find(old);
    return json.replace(at, at == json.npos ? 0 : old.size(), changed);
  };
  EXPECT_EQ(fault_of("[1, 2]"), "not a report: it is no object");
  EXPECT_EQ(fault_of("{}"), "not a report: it has no \"model\"");
  EXPECT_EQ(fault_of("{\"model\": 1e999}"), "not a report: a number is too large");
  EXPECT_THAT(fault_of("{\n{"), HasSubstr("not a report: no JSON at line 2, column 1"));
  EXPECT_EQ(fault_of(with("\"ptb\"", "[]")), "not a report: model is no text");
  EXPECT_EQ(fault_of(with("\"cores\": 1.75", "\"cores\": {}")),
            "not a report: tasks[0].use.cores is no number");
  EXPECT_EQ(fault_of(with("\"steps\": ", "\"steps\": 0.5, \"more\": ")),
            "not a report: tasks[0].steps is no whole number");
  EXPECT_EQ(fault_of(with("\"most_threads\": 2", "\"most_threads\": 1e300")),
            "not a report: tasks[0].input.most_threads is no whole number");
  EXPECT_EQ(fault_of(with("\"disk_bytes_per_s\"", "\"disk\"")),
            "not a report: tasks[0].use has no \"disk_bytes_per_s\"");
}

TEST(Report, HasNoTextThatATerminalTakesForACommand) {
  Report report = report_of(worker(0, 1));
  report.error = "a\x1b[2J";
  report.tasks[0].share = {{"\x1b]0;x", 1}};
  report.flags = {{"--a\x07",
                   "\xc2\x9b"
                   "2J"}};
  const Report read = Report::from_json(report.to_json());
  EXPECT_EQ(read.error, "a?[2J");
  EXPECT_EQ(read.tasks[0].share[0].first, "?]0;x");
  EXPECT_EQ(read.flags[0], std::pair(std::string("--a?"), std::string("?2J")));
}

TEST(Report, ReadsBackEveryDigit) {
  Report report = report_of(worker(0, 1.0 / 3.0));
  report.tasks.push_back(ps());
  report.circumstances = {"0.1.0", "here", "2026-11-21T15:53:01Z", "paceline train ptb"};
  report.first_loss = 6.9077553749084473;
  report.last_loss = 0.1 + 0.2;
  report.loss_begin = {6.5, 1.0 / 3.0, 20};
  report.loss_end = {0.1 + 0.2, 1e-3, 20};
  report.set("perplexity", "train", 123.456789012345678);
  report.set("perplexity", "test", std::nullopt);
  report.set("fetch/128x32x256", "local_us", 30.5);
  report.set("fetch/256x128x64", "local_us", 40.25);
  report.global_step = 1234;
  report.cores = 2;
  report.expected = {1.5,
                     1,
                     2,
                     "the device",
                     "devices",
                     "--ps 1 --workers 2",
                     {{"--ps 2 --workers 2", 2.25}},
                     {{"cores", 2}},
                     2};
  report.error = "worker:0 lost ps:0\n\"quoted\"";
  EXPECT_EQ(Report::from_json(report.to_json()), report);
}

TEST(Report, IsWrittenAsItAlwaysWas) {
  const std::string written = nlohmann::ordered_json::parse(kWrittenReport).dump(2) + "\n";
  EXPECT_EQ(Report::from_json(written).to_json(), written);
}

TEST(Report, FindsWhatWasMeasuredOfASection) {
  Report report;
  report.set("perplexity", "train", 7);
  report.set("perplexity", "test", std::nullopt);
  EXPECT_EQ(report.value("perplexity", "train"), 7.0);
  for (const char* key : {"test", "valid"})
    EXPECT_EQ(report.value("perplexity", key), std::nullopt);
  EXPECT_EQ(report.value("fetch/1,2,3", "train"), std::nullopt);
}

TEST(Report, HasTheDocumentedFields) {
  Report report = report_of(worker(0, 4));
  report.tasks.push_back(ps());
  report.set("fetch/128x32x256", "added_us", 7);
  const auto json = nlohmann::json::parse(report.to_json());
  const auto& task = json["tasks"][0];
  for (const char* key : {"task", "steps", "seconds", "steps_per_s", "examples_per_s", "unit",
                          "step_ms", "share", "hidden_ms", "use"}) {
    EXPECT_TRUE(task.contains(key)) << key;
  }
  EXPECT_EQ(task["step_ms"]["p50"], 250.0);
  EXPECT_EQ(task["use"]["cores"], 1.75);
  EXPECT_EQ(task["use"]["network_bytes_per_s"]["received"], 2e6);
  EXPECT_TRUE(task["use"]["disk_bytes_per_s"]["read"].is_null());
  EXPECT_EQ(task["use"]["peak_memory_bytes"], 3e8);
  EXPECT_FALSE(json["tasks"][1]["use"].contains("device_busy"));
  EXPECT_EQ(json["precision"], "bfloat16");
  EXPECT_TRUE(json["cores"].is_null());
  EXPECT_EQ(json["tasks"][1]["share"]["queue"], 0.5);
  EXPECT_FALSE(json["tasks"][1].contains("steps_per_s"));
  EXPECT_EQ(json["total"]["steps_per_s"], 4.0);
  EXPECT_TRUE(json["global_step"].is_null());
  EXPECT_EQ(json["fetch"][0]["shape"], "128x32x256");
  EXPECT_EQ(json["fetch"][0]["added_us"], 7.0);
  EXPECT_TRUE(json["loss"]["first"].is_null());
  EXPECT_FALSE(json.contains("error"));
}

TEST(Report, ReadsThoseThatSayNothingOfUse) {
  auto json = nlohmann::json::parse(report_of(worker(0, 4)).to_json());
  json["tasks"][0].erase("use");
  EXPECT_EQ(Report::from_json(json.dump()).tasks[0].use, TaskUse());
}

TEST(Report, SaysWhichLinksAreEncryptedAndEarlierVersionsDidNot) {
  Report report = report_of(worker(0, 4));
  report.tasks[0].links[0].encrypted = true;
  auto json = nlohmann::json::parse(report.to_json());
  EXPECT_EQ(json["tasks"][0]["links"][0]["encrypted"], true);
  EXPECT_TRUE(Report::from_json(json.dump()).tasks[0].links[0].encrypted);
  json["tasks"][0]["links"][0].erase("encrypted");
  EXPECT_FALSE(Report::from_json(json.dump()).tasks[0].links[0].encrypted);
  json["tasks"][0]["links"][0]["encrypted"] = 1;
  EXPECT_THROW(Report::from_json(json.dump()), Error);
}

TEST(Report, SaysHowAWorkerReachesEachPsAndWhichKernelsTookMost) {
  const auto json = nlohmann::json::parse(report_of(worker(0, 4)).to_json());
  const auto& link = json["tasks"][0]["links"][0];
  EXPECT_EQ(link["to"], "ps:0");
  EXPECT_EQ(link["kind"], "tcp");
  EXPECT_EQ(link["encrypted"], false);
  EXPECT_EQ(link["round_trip_us"], 41.5);
  EXPECT_EQ(link["bytes_per_step"]["received"], 7);
  EXPECT_TRUE(link["bytes_per_s"]["received"].is_null());
  EXPECT_EQ(json["tasks"][0]["kernels"][0]["op"], "matmul");
  EXPECT_EQ(json["tasks"][0]["kernels"][0]["share"], 0.75);
}

TEST(Report, ReadsThoseThatSayNothingOfLinksAndKernels) {
  auto json = nlohmann::json::parse(report_of(worker(0, 4)).to_json());
  for (const char* key : {"links", "kernels"}) json["tasks"][0].erase(key);
  const TaskReport task = Report::from_json(json.dump()).tasks[0];
  EXPECT_TRUE(task.links.empty());
  EXPECT_TRUE(task.kernels.empty());
}

TEST(Report, ReadsThoseThatSayNothingOfStaleness) {
  auto json = nlohmann::json::parse(report_of(worker(0, 4)).to_json());
  EXPECT_EQ(json["tasks"][0]["staleness"]["p95"], 2);
  json["tasks"][0].erase("staleness");
  EXPECT_EQ(Report::from_json(json.dump()).tasks[0].staleness_mean, std::nullopt);
}

TEST(Report, UseIsPerSecondOfItsTime) {
  const MachineUse machine{.seconds = 2,
                           .core_seconds = 3,
                           .disk_read = std::nullopt,
                           .disk_written = 4'000'000,
                           .peak_memory = 300'000'000};
  TaskUse use = task_use(machine, 2'000'000, 5'000'000);
  use.device_busy = 0.98;
  EXPECT_EQ(use.text(),
            "1.50 cores, device busy 98%, network 2.5 MB/s in 1.0 out, peak memory 300 MB");
  use.disk_read = 1e6;
  EXPECT_THAT(use.text(), testing::HasSubstr("disk 1.0 MB/s read 2.0 written"));
  EXPECT_EQ(task_use(std::nullopt, 1, 1), TaskUse());
}

TEST(Report, UntimedTasksAreNull) {
  TaskReport task;
  task.task = "worker:0";
  task.steps = 7;
  const auto json = nlohmann::json::parse(report_of(task).to_json());
  EXPECT_TRUE(json["tasks"][0]["steps_per_s"].is_null());
  EXPECT_TRUE(json["total"]["steps_per_s"].is_null());
}

TEST(Report, ALossThatIsNoNumberIsNull) {
  Report report = report_of(worker(0, 1));
  report.last_loss = std::nan("");
  EXPECT_FALSE(Report::from_json(report.to_json()).last_loss.has_value());
}

TEST(Report, RefusesWhatIsNoReport) {
  EXPECT_THROW(Report::from_json("{\"model\": \"ptb\"}"), Error);
  EXPECT_THROW(Report::from_json("{\"model\""), Error);
  for (const int cores : {0, -1}) {
    Report of_no_machine;
    of_no_machine.cores = cores;
    EXPECT_THROW(Report::from_json(of_no_machine.to_json()), Error);
  }
  EXPECT_THROW(read_report("/nonexistent/report.json"), Error);
  EXPECT_THROW(write_report("/nonexistent/report.json", Report{}), Error);
}

TEST(Report, IsWrittenWholeAndReplacesAnOldOne) {
  const std::string path = testing::TempDir() + "report_test_" + std::to_string(getpid()) + ".json";
  write_report(path, report_of(worker(0, 1)));
  write_report(path, report_of(worker(0, 2)));
  EXPECT_EQ(read_report(path), report_of(worker(0, 2)));
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
  std::filesystem::remove(path);
}

TEST(MergedReport, PutsWorkersFirstAndAddsThemUp) {
  std::vector<Report> reports = {report_of(ps()), report_of(worker(10, 1)), report_of(worker(2, 2)),
                                 report_of(worker(0, 4))};
  reports[3].first_loss = 9.0;
  reports[2].first_loss = 8.0;
  reports[3].cores = 4;
  reports[2].cores = 2;
  const Report merged = merge(reports);
  std::vector<std::string> names;
  for (const TaskReport& task : merged.tasks) names.push_back(task.task);
  EXPECT_THAT(names, testing::ElementsAre("worker:0", "worker:2", "worker:10", "ps:0"));
  EXPECT_EQ(merged.first_loss, 9.0);
  EXPECT_EQ(merged.cores, 4);
  EXPECT_EQ(merged.model, "ptb");
  EXPECT_EQ(merged.tls, "all links");
  const auto json = nlohmann::json::parse(merged.to_json());
  EXPECT_EQ(json["total"]["steps_per_s"], 7.0);
  EXPECT_EQ(json["total"]["examples_per_s"], 2800.0);
}

TEST(MergedReport, TotalIsUnknownWhenAWorkersSpeedIs) {
  TaskReport short_run;
  short_run.task = "worker:1";
  short_run.steps = 5;
  const Report merged = merge(std::vector{report_of(worker(0, 4)), report_of(short_run)});
  EXPECT_TRUE(nlohmann::json::parse(merged.to_json())["total"]["steps_per_s"].is_null());
}

TEST(MergedReport, ValidPerplexityIsTheGeometricMeanOfTheParts) {
  std::vector<Report> reports = {report_of(worker(0, 4)), report_of(worker(1, 4)), report_of(ps())};
  reports[0].set("perplexity", "train", 50);
  reports[0].set("perplexity", "valid", 100);
  reports[0].set("perplexity", "test", 90);
  reports[1].set("perplexity", "train", 60);
  reports[1].set("perplexity", "valid", 400);
  reports[1].set("perplexity", "test", std::nullopt);
  const auto json = nlohmann::json::parse(merge(reports).to_json());
  EXPECT_EQ(json["perplexity"]["train"], 50.0);
  EXPECT_NEAR(json["perplexity"]["valid"].get<double>(), 200.0, 1e-9);
  EXPECT_EQ(json["perplexity"]["test"], 90.0);
}

TEST(MergedReport, OfOneReportIsThatReport) {
  const std::vector<Report> one = {Report::from_json(kWrittenReport)};
  EXPECT_EQ(merge(one), one.front());
}

TEST(MergedReport, KeepsTheFirstError) {
  std::vector<Report> reports = {report_of(worker(0, 4)), report_of(worker(1, 4))};
  reports[1].error = "broken";
  EXPECT_EQ(merge(reports).error, "broken");
}

}  // namespace
}  // namespace paceline
