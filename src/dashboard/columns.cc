#include "dashboard/columns.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

namespace paceline {
namespace {

using Shown = Column::Shown;
/// Columns with their places.
using Placed = std::vector<std::pair<int, Column>>;

template <typename Record>
Shown shown(const ReportField<Record>& field) {
  if (field.unit.starts_with("bytes")) return Shown::kScaled;
  if (field.column.two_digits) return Shown::kTwoDigits;
  const bool whole =
      std::holds_alternative<FieldPlace<Record, std::int64_t>>(field.value) ||
      std::holds_alternative<FieldPlace<Record, std::optional<std::int64_t>>>(field.value);
  return whole ? Shown::kWhole : Shown::kNumber;
}

template <typename Record>
void add_columns(Placed& columns) {
  for (const ReportField<Record>& field : report_fields<Record>()) {
    if (field.column.head.empty()) continue;
    columns.push_back(
        {field.shown_at, {field.name, field.unit, field.help, field.column, shown(field)}});
  }
}

std::vector<Column> in_order(Placed placed) {
  std::ranges::stable_sort(placed, {}, &std::pair<int, Column>::first);
  std::vector<Column> columns;
  for (const auto& [place, column] : placed) columns.push_back(column);
  return columns;
}

}  // namespace

std::vector<Column> task_columns() {
  Placed columns;
  add_columns<TaskReport>(columns);
  add_columns<LiveTask>(columns);
  return in_order(std::move(columns));
}

std::vector<Column> link_columns() {
  Placed columns;
  add_columns<LinkReport>(columns);
  return in_order(std::move(columns));
}

std::string columns_json(const std::vector<Column>& columns) {
  constexpr std::array<const char*, 4> kShown = {"number", "whole", "two_digits", "scaled"};
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Column& column : columns) {
    list.push_back({{"head", column.field.head},
                    {"help", column.help},
                    {"path", column.path},
                    {"unit", column.unit},
                    {"shown", kShown[std::size_t(column.shown)]},
                    {"of_workers", column.field.of_workers},
                    {"if_known", column.field.if_known}});
  }
  return list.dump();
}

}  // namespace paceline
