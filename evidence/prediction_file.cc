#include "evidence/prediction_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <utility>

#include "bench/figures.h"
#include "paceline/error.h"
#include "paceline/version.h"

namespace paceline::bench {
namespace {

constexpr const char* kHeader =
    "machine,cores,date,commit,gbytes_per_s,row,model,strategy,ps,workers,link,wire,predicted,low,"
    "high,measured,ratio,limit,limited_by,rule_gbytes_per_s,computed,roof_moved_percent,"
    "tcp_send_gbytes_per_s,tcp_receive_gbytes_per_s,core_tcp_send_gbytes_per_s,core_tcp_"
    "receive_gbytes_per_s,core_trip_ns,thread_gbytes_per_s,thread_rule_gbytes_per_s";

// Returns a field of CSV, in quotes.
std::string quoted_field(const std::string& text) {
  std::string field = "\"";
  for (const char c : text) field += c == '"' ? "\"\"" : std::string(1, c);
  return field + "\"";
}

void append(const std::string& path, const std::string& line) {
  std::ofstream file(path, std::ios::app);
  if (file << line << '\n' && file.flush()) return;
  throw Error(ErrorCode::kUnavailable, fmt::format("--csv {}: cannot be written", path));
}

bool is_among(const std::set<std::string>& lines, const PredictionRow& row) {
  const std::string name = quoted_field(row.name());
  return std::ranges::any_of(lines,
                             [&](const std::string& line) { return line.find(name) != line.npos; });
}

}  // namespace

double roof_change(const PredictedHost& before, const PredictedHost& after) {
  double most = 0;
  for (const auto rate : {&PredictedHost::flops_per_s, &PredictedHost::rule_bytes_per_s}) {
    if (before.*rate > 0) most = std::max(most, std::abs(after.*rate / before.*rate - 1));
  }
  return most;
}

PredictionFile::PredictionFile(std::string path)
    : path_(std::move(path)), commit_(version_and_commit()) {
  std::ifstream file(path_);
  std::string line;
  if (!std::getline(file, line)) {
    append(path_, kHeader);
    return;
  }
  if (line != kHeader) {
    throw Error(ErrorCode::kFailedPrecondition,
                fmt::format("--csv {}: its columns are not those of this version; name another "
                            "file",
                            path_));
  }
  while (std::getline(file, line)) {
    (line.find(commit_) != line.npos ? known_ : others_).insert(line);
  }
}

bool PredictionFile::knows(const PredictionRow& row) const { return is_among(known_, row); }

bool PredictionFile::has(const PredictionRow& row) const {
  return knows(row) || is_among(others_, row);
}

void PredictionFile::add(const PredictionRow& row, const PredictionResult& result) const {
  const ExpectedSpeed& expected = result.expected;
  const PredictedHost& host = result.host;
  append(
      path_,
      fmt::format("{},{},{},{},{:.1f},", quoted_field(processor_name()), host.cores, today(),
                  commit_, host.bytes_per_s * 1e-9) +
          fmt::format("{},{},{},{},{},{},{},", quoted_field(row.name()), row.model, row.strategy,
                      row.ps, row.workers, row.link, row.bfloat16 ? "bfloat16" : "float32") +
          fmt::format("{:.4g},{:.4g},{:.4g},{:.4g},{:.4f},{},{},", expected.steps_per_s,
                      expected.low, expected.high, result.made, result.ratio(),
                      quoted_field(expected.limit), expected.limited_by) +
          fmt::format("{:.1f},{},{},", host.rule_bytes_per_s * 1e-9, row.computed() ? "yes" : "no",
                      result.roof_moved ? fmt::format("{:.1f}", 100 * *result.roof_moved) : "") +
          fmt::format("{:.2f},{:.2f},{:.2f},{:.2f},{:.0f},{:.1f},{:.1f}",
                      host.tcp_send_bytes_per_s * 1e-9, host.tcp_receive_bytes_per_s * 1e-9,
                      host.core_tcp_send_bytes_per_s * 1e-9,
                      host.core_tcp_receive_bytes_per_s * 1e-9, host.core_trip_s * 1e9,
                      host.thread_bytes_per_s * 1e-9, host.thread_rule_bytes_per_s * 1e-9));
}

}  // namespace paceline::bench
