// The fields of reports: one list for each record of a report. The file, /metrics, the live page,
// top, plot, the explanation of a part of a run and the pages of docs/ follow from these lists, so
// that a new field is one entry.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "run/report/report.h"
#include "run/report/task_progress.h"

namespace paceline {

/// The place of a field in a record, at any depth.
template <typename Record, typename T>
struct FieldPlace {
  const T& (*of)(const Record& record);
  T& (*in)(Record& record);
};

/// A field that is computed from others: it is written, and never read.
template <typename Record, typename T>
struct DerivedField {
  std::optional<T> (*of)(const Record& record);
};

template <typename Record>
using FieldValue = std::variant<
    FieldPlace<Record, double>, FieldPlace<Record, std::optional<double>>,
    FieldPlace<Record, std::int64_t>, FieldPlace<Record, std::optional<std::int64_t>>,
    FieldPlace<Record, int>, FieldPlace<Record, std::optional<int>>, FieldPlace<Record, bool>,
    FieldPlace<Record, std::string>, FieldPlace<Record, std::vector<std::string>>,
    FieldPlace<Record, std::vector<std::pair<std::string, double>>>,
    FieldPlace<Record, std::vector<std::pair<std::string, std::string>>>,
    // Records of a record.
    FieldPlace<Record, std::optional<KeptValues>>, FieldPlace<Record, std::optional<InputReport>>,
    FieldPlace<Record, std::optional<LossWindow>>, FieldPlace<Record, std::optional<ExpectedSpeed>>,
    FieldPlace<Record, std::vector<LinkReport>>, FieldPlace<Record, std::vector<KernelReport>>,
    FieldPlace<Record, std::vector<StageReport>>, FieldPlace<Record, std::vector<TaskReport>>,
    FieldPlace<Record, std::vector<ReportSection>>,  // each is a member of its own
    DerivedField<Record, double>, DerivedField<Record, std::string>>;

/// How to compute a field over the time between two reports of one run.
enum class OverTime : std::uint8_t {
  kLast,      // as the later report has it
  kSum,       // it only grows: the difference
  kStepSum,   // the same, where steps were timed in between
  kStepMean,  // the mean over the time of the timed steps
  kUseSum,    // it grows with `use.seconds`
  kUseMean,   // the mean over `use.seconds`
};

/// How /metrics has a field.
struct FieldMetric {
  enum class Value : std::uint8_t { kAsIs, kTimesSteps, kTimesSeconds };  // of the task

  std::string_view name = {};  // without "paceline_"; empty: it is not there
  std::string_view help = {};
  /// A label's name and value. If a field has several named numbers, the label's value is the
  /// number's name.
  std::pair<std::string_view, std::string_view> label = {};
  Value value = Value::kAsIs;
  double times = 1;
  bool counter = false;
};

/// The column in which the page and top show a field of a task.
struct FieldColumn {
  std::string_view head = {};  // empty: it is not shown
  int width = 9;               // in a terminal; 0: only the page shows it
  bool two_digits = false;     // behind the point
  bool of_workers = false;
  bool if_known = false;  // the page leaves it out of a single task, and where no task has it
};

/// One field of a record.
template <typename Record>
struct ReportField {
  std::string_view name;       // of its member in the file, by its path: "step_ms.p50"
  std::string_view unit = {};  // "ms"; empty: a text, or a number without one
  std::string_view help = {};
  FieldValue<Record> value;
  /// The part of its name that files of earlier versions may lack: "use" of "use.cores". Empty:
  /// all have it.
  std::string_view later = {};
  bool (*is_of)(const Record& record) = nullptr;  // others do not have it; null: all have it
  bool if_known = false;    // the file leaves it out when it is as in an empty record
  bool may_be_nan = false;  // which is null in the file
  OverTime over_time = OverTime::kLast;
  int shown_at = 0;  // its place in /metrics and among columns
  /// The tag of its number in event files (docs/summaries.md), or the family of several: "share/".
  std::string_view tag = {};
  FieldMetric metric = {};
  FieldColumn column = {};
};

template <typename T, typename... Types>
constexpr bool kIsOneOf = (std::is_same_v<T, Types> || ...);

/// What has a list of fields.
template <typename T>
concept ReportRecord = kIsOneOf<T, Report, TaskReport, LinkReport, KernelReport, KeptValues,
                                InputReport, StageReport, LossWindow, ExpectedSpeed, LiveTask>;

/// The list of a record, in the order of the file. The first field of one that stands in a list
/// names it: "to" of a link.
template <ReportRecord Record>
std::span<const ReportField<Record>> report_fields();

template <>
std::span<const ReportField<Report>> report_fields();
template <>
std::span<const ReportField<TaskReport>> report_fields();
template <>
std::span<const ReportField<LinkReport>> report_fields();
template <>
std::span<const ReportField<KernelReport>> report_fields();
template <>
std::span<const ReportField<KeptValues>> report_fields();
template <>
std::span<const ReportField<InputReport>> report_fields();
template <>
std::span<const ReportField<StageReport>> report_fields();
template <>
std::span<const ReportField<LossWindow>> report_fields();
template <>
std::span<const ReportField<ExpectedSpeed>> report_fields();
/// The numbers of a task that the page and top know beside its report.
template <>
std::span<const ReportField<LiveTask>> report_fields();

/// Adds a field to those of a task for as long as it lives. No other thread may look at the list
/// meanwhile.
class AddedReportField {
 public:
  explicit AddedReportField(ReportField<TaskReport> field);
  ~AddedReportField();
  AddedReportField(const AddedReportField&) = delete;
  AddedReportField& operator=(const AddedReportField&) = delete;
};

/// Calls visit(place) with the place of the field, whose type is FieldPlace or DerivedField.
template <typename Record, typename Visit>
void visit_field(const ReportField<Record>& field, const Record& record, Visit&& visit) {
  if (field.is_of != nullptr && !field.is_of(record)) return;
  std::visit(std::forward<Visit>(visit), field.value);
}

}  // namespace paceline
