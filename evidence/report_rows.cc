#include "evidence/report_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace paceline::bench {
namespace {

// Rows from TensorFlow issues 10145 (mlp), 11411 (fetch), 6520 (cifar10) and 9399 (resnet), and
// from a report on the Penn Treebank model (ptb). The constants are the step times on their
// authors' devices; bench/peers/reports.json has the speeds that the authors measured.
constexpr double kMlpMs = 5.6, kPtbMs = 36, kCifarMs = 21, kResnetMs = 333;
constexpr double kFetchWholeMs = 1.6;  // for the whole batch, which workers divide

std::vector<ReportRow> mlp_rows() {
  return {{"mlp", "one process", kMlpMs, 0, 1, true},
          {"mlp", "1 ps + 1 worker", kMlpMs, 1, 1},
          {"mlp", "1 ps + 2 workers", kMlpMs, 1, 2},
          {"mlp", "1 ps + 4 workers", kMlpMs, 1, 4, true},
          {"mlp", "1 ps + 4 workers, sync", kMlpMs, 1, 4, false, "sync", true},
          {"mlp", "4 workers, all-reduce", kMlpMs, 0, 4, false, "allreduce", true},
          {.report = "mlp",
           .name = "1 ps + 1 worker, 1 Gbit/s",
           .device_ms = kMlpMs,
           .ps = 1,
           .gbps = 1},
          {.report = "mlp",
           .name = "1 ps + 1 worker, 1 Gbit/s, bfloat16 wire",
           .device_ms = kMlpMs,
           .ps = 1,
           .gbps = 1,
           .bfloat16 = true}};
}

std::vector<ReportRow> ptb_rows() {
  std::vector<ReportRow> rows = {{"ptb", "one process", kPtbMs, 0, 1},
                                 {"ptb", "1 ps + 1 worker", kPtbMs, 1, 1, true},
                                 {"ptb", "1 ps + 2 workers", kPtbMs, 1, 2, true},
                                 {"ptb", "1 ps + 4 workers", kPtbMs, 1, 4}};
  for (const int towers : {2, 4}) {
    rows.push_back({.report = "ptb",
                    .name = fmt::format("one worker with {} devices", towers),
                    .device_ms = kPtbMs,
                    .towers = towers});
  }
  for (const char* strategy : {"", "local_sgd"}) {
    const bool local = *strategy != '\0';
    rows.push_back(
        {.report = "ptb",
         .name = fmt::format("1 ps + 4 workers, 1 Gbit/s{}", local ? ", local steps" : ""),
         .device_ms = kPtbMs,
         .ps = 1,
         .workers = 4,
         .strategy = strategy,
         .gbps = 1});
  }
  return rows;
}

std::vector<ReportRow> fetch_rows() {
  std::vector<ReportRow> rows;
  for (const int workers : {1, 2, 4, 8, 16}) {
    const double part_ms = kFetchWholeMs / workers;
    rows.push_back({.report = "fetch",
                    .name = fmt::format("{} worker{}, {:.0f} us of computing a step", workers,
                                        workers == 1 ? "" : "s", 1000 * part_ms),
                    .device_ms = part_ms,
                    .ps = 1,
                    .workers = workers,
                    .quick = workers == 1 || workers == 8,
                    .rounds = true,
                    .seconds = 2});
  }
  return rows;
}

std::vector<ReportRow> cifar10_rows() {
  std::vector<ReportRow> rows;
  for (const int devices : {1, 2, 4, 8}) {
    rows.push_back({.report = "cifar10",
                    .name = fmt::format("{} device{}", devices, devices == 1 ? "" : "s"),
                    .device_ms = kCifarMs,
                    .quick = devices == 1 || devices == 8,
                    .towers = devices});
  }
  return rows;
}

/// A shape of the cluster that the author built on four machines.
struct ResnetShape {
  int number, ps, workers;
  const char* place;
  const char* workers_place;  // the place for an all-reduce; empty: that of the previous shape
};
constexpr ResnetShape kShapes[] = {
    {1, 1, 2, "ps+2", "2"},         {2, 1, 2, "ps+1/1", "1/1"},
    {3, 1, 4, "ps+2/2", "2/2"},     {4, 1, 8, "ps+2/2/2/2", "2/2/2/2"},
    {5, 2, 8, "ps+2/ps+2/2/2", ""}, {6, 4, 8, "ps+2/ps+2/ps+2/ps+2", ""},
};

std::string rate_text(double gbps) {
  return gbps < 1 ? fmt::format("{:.0f} Mbit/s", 1000 * gbps) : fmt::format("{} Gbit/s", gbps);
}

ReportRow shape_row(const ResnetShape& shape, double gbps) {
  return {.report = "resnet",
          .name = fmt::format("shape {}, {}", shape.number, rate_text(gbps)),
          .device_ms = kResnetMs,
          .ps = shape.ps,
          .workers = shape.workers,
          .gbps = gbps,
          .place = shape.place};
}

void add_shapes(std::vector<ReportRow>& rows, double gbps) {
  for (const ResnetShape& shape : kShapes) {
    rows.push_back(shape_row(shape, gbps));
    rows.back().quick = gbps == 1 && (shape.number == 3 || shape.number == 6);
  }
  for (const ResnetShape& shape : kShapes) {
    rows.push_back(shape_row(shape, gbps));
    rows.back().name += ", sync";
    rows.back().strategy = "sync";
  }
  for (const ResnetShape& shape : kShapes) {
    const std::string place = shape.workers_place;
    if (place.empty()) continue;
    ReportRow row = shape_row(shape, gbps);
    row.name =
        fmt::format("{}, {}, all-reduce",
                    shape.number == 4 ? "shapes 4 to 6" : fmt::format("shape {}", shape.number),
                    rate_text(gbps));
    row.ps = 0;
    row.place = place;
    row.strategy = "allreduce";
    rows.push_back(row);
  }
}

// The rows run until two exchanges of every variable were measured.
void add_local_shapes(std::vector<ReportRow>& rows, double gbps) {
  for (const ResnetShape& shape : kShapes) {
    rows.push_back(shape_row(shape, gbps));
    rows.back().name += ", local steps";
    rows.back().strategy = "local_sgd";
    rows.back().quick = gbps < 1 && shape.number == 4;
    rows.back().seconds = 2 * kReportLocalSteps * kResnetMs / 1000;
  }
}

std::vector<ReportRow> resnet_rows() {
  std::vector<ReportRow> rows = {{"resnet", "one process", kResnetMs, 0, 1}};
  for (const int workers : {1, 4, 8}) {
    rows.push_back({"resnet",
                    fmt::format("1 ps + {} worker{}, one host", workers, workers == 1 ? "" : "s"),
                    kResnetMs, 1, workers});
  }
  for (const int backups : {0, 1}) {
    rows.push_back({.report = "resnet",
                    .name = fmt::format("3 workers beside one 3 times as slow, {}",
                                        backups > 0 ? "sync with one backup" : "one host"),
                    .device_ms = kResnetMs,
                    .ps = 1,
                    .workers = 4,
                    .strategy = backups > 0 ? "sync" : "",
                    .backups = backups,
                    .straggler = true});
  }
  for (const int workers : {1, 2, 8}) {
    rows.push_back(
        {.report = "resnet",
         .name = fmt::format("1 ps + {} worker{}, 1 Gbit/s", workers, workers == 1 ? "" : "s"),
         .device_ms = kResnetMs,
         .ps = 1,
         .workers = workers,
         .gbps = 1});
  }
  rows.push_back(rows.back());
  rows.back().name += ", bfloat16 wire";
  rows.back().bfloat16 = true;
  for (const double gbps : {0.0, 1.0}) {
    rows.push_back({.report = "resnet",
                    .name = fmt::format("the slowest of 8 workers that start 5 s apart, {}",
                                        gbps > 0 ? rate_text(gbps) : "one host"),
                    .device_ms = kResnetMs,
                    .ps = 1,
                    .workers = 8,
                    .quick = gbps > 0,
                    .gbps = gbps,
                    .apart_s = 5});
  }
  for (const double gbps : {1.0, 2.0}) add_shapes(rows, gbps);
  for (const double gbps : {1.0, 0.1}) add_local_shapes(rows, gbps);
  return rows;
}

}  // namespace

double ReportRow::expected_seconds() const {
  constexpr double kStart = 3.5, kLab = 1.5, kUntimedSteps = 11;
  const double lab = gbps > 0 ? kLab : 0;
  const double untimed = kUntimedSteps * device_ms / 1000 * (straggler ? 3 : 1);
  // Workers that join one after another train until the last one has trained for twice the interval
  // between joins.
  if (apart_s > 0) return kStart + apart_s * (workers + 2);
  // A run of fetch measures both steps that fetch and steps that do not.
  if (report == "fetch") return kStart + 2 * seconds;
  return kStart + lab + untimed + seconds;
}

std::vector<ReportRow> report_rows() {
  std::vector<ReportRow> all;
  for (const auto rows : {mlp_rows, ptb_rows, fetch_rows, cifar10_rows, resnet_rows}) {
    std::ranges::move(rows(), std::back_inserter(all));
  }
  return all;
}

}  // namespace paceline::bench
