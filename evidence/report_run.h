// A row of the reports, run for real.
#pragma once

#include "bench/generated_text.h"
#include "evidence/report_rows.h"

namespace paceline::bench {

/// "steps/s", "rounds/s", "batches/s".
const char* unit_of(const ReportRow& row);
/// Returns the steps per second of all devices together, or what the row counts instead. The row's
/// workers start at once.
double run_report_row(const ReportRow& row, GeneratedText& text);

}  // namespace paceline::bench
