// The columns of the tables that the page and top show: those that the lists of report fields ask
// for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "run/report/report_fields.h"

namespace paceline {

struct Column {
  enum class Shown : std::uint8_t { kNumber, kWhole, kTwoDigits, kScaled };

  std::string_view path;  // of the number in its record: "use.cores" of a task
  std::string_view unit, help;
  FieldColumn field;
  Shown shown = Shown::kNumber;
};

/// Return the columns of a task and of a link in state.json.
std::vector<Column> task_columns();
std::vector<Column> link_columns();
/// Returns the columns as the script of the page reads them.
std::string columns_json(const std::vector<Column>& columns);

}  // namespace paceline
