// The columns of the tables that the page and `paceline top` show, according to the lists of report
// fields.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "run/report/report_fields.h"

namespace paceline {

struct Column {
  enum class Shown : std::uint8_t { kNumber, kWhole, kTwoDigits, kScaled };

  // The path of the number in its record: "use.cores" in a task.
  std::string_view path;
  std::string_view unit, help;
  FieldColumn field;
  Shown shown = Shown::kNumber;
};

/// Return the columns for tasks and for links in state.json.
std::vector<Column> task_columns();
std::vector<Column> link_columns();
/// Returns the columns in the form that the page's script reads.
std::string columns_json(const std::vector<Column>& columns);

}  // namespace paceline
