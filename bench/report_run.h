// A row of the reports, run for real.
#pragma once

#include "bench/figures.h"
#include "bench/generated_text.h"
#include "bench/report_rows.h"

namespace paceline::bench {

struct ReportSpeed {
  /// Steps per second of all devices together, or rounds; of workers that join one after the other
  /// the steps of the slowest.
  double per_s = 0;
  std::vector<Series> series = {};  // of workers that join: the speed of each over time
};

const char* unit_of(const ReportRow& row);
ReportSpeed run_report_row(const ReportRow& row, GeneratedText& text);

}  // namespace paceline::bench
