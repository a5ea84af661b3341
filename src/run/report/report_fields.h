// The fields of reports, in one list for each kind of record. The file, /metrics, the live page,
// top, plot, explanations and the pages of docs/ all follow these lists, so that a new field needs
// one entry.
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

/// Ways to reach a field in a record, or in a record that this record contains.
template <typename Record, typename T>
struct FieldPlace {
  const T& (*of)(const Record& record);
  T& (*in)(Record& record);
};

/// A field that is computed from others. It is written, but never read.
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
    /// Each section is a member of the file's object.
    FieldPlace<Record, std::vector<ReportSection>>, DerivedField<Record, double>,
    DerivedField<Record, std::string>>;

/// How to compute a field over the time between two reports of one run.
enum class OverTime : std::uint8_t {
  kLast,      // the value of the later report
  kSum,       // the field only grows: the difference
  kStepSum,   // like kSum, but only if steps were timed in between
  kStepMean,  // the mean, weighted by the time of the timed steps
  kUseSum,    // the field grows with `use.seconds`: the difference
  kUseMean,   // the mean over `use.seconds`
};

/// How /metrics shows a field.
struct FieldMetric {
  /// By what the task's value is multiplied.
  enum class Value : std::uint8_t { kAsIs, kTimesSteps, kTimesSeconds };

  std::string_view name = {};  // without "paceline_"; empty: /metrics lacks the field
  std::string_view help = {};
  /// A label's name and value. If the field has several named numbers, each has its own name as the
  /// label's value.
  std::pair<std::string_view, std::string_view> label = {};
  Value value = Value::kAsIs;
  double times = 1;
  bool counter = false;
};

/// The column in which the page and `paceline top` show a field of a task.
struct FieldColumn {
  std::string_view head = {};  // empty: neither shows the field
  int width = 9;               // its width in a terminal; 0: only the page shows it
  bool two_digits = false;     // two digits behind the point
  bool of_workers = false;
  // The page leaves the column out for a single task, and if no task has the field.
  bool if_known = false;
};

/// One field of a record.
template <typename Record>
struct ReportField {
  std::string_view name;       // the path of its member in the file: "step_ms.p50"
  std::string_view unit = {};  // "ms"; empty for a text, and for a number without a unit
  std::string_view help = {};
  FieldValue<Record> value;
  /// The beginning of the field's path that files of earlier versions may lack: "use" of
  /// "use.cores". Empty if all files have the field.
  std::string_view later = {};
  // Records for which this is false lack the field; null: all have it.
  bool (*is_of)(const Record& record) = nullptr;
  bool if_known = false;    // the file leaves the field out if its value is that of an empty record
  bool may_be_nan = false;  // the value may be NaN, which is null in the file
  OverTime over_time = OverTime::kLast;
  int shown_at = 0;  // its place in /metrics and among columns
  /// The tag of the number in event files (docs/summaries.md), or the beginning of the tags of
  /// several numbers: "share/".
  std::string_view tag = {};
  FieldMetric metric = {};
  FieldColumn column = {};
};

template <typename T, typename... Types>
constexpr bool kIsOneOf = (std::is_same_v<T, Types> || ...);

/// The kinds of records that have a list of fields.
template <typename T>
concept ReportRecord = kIsOneOf<T, Report, TaskReport, LinkReport, KernelReport, KeptValues,
                                InputReport, StageReport, LossWindow, ExpectedSpeed, LiveTask>;

/// Returns the fields of a record, in the order of the file. For records in a list, the first field
/// is their name: "to" of a link.
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
/// The numbers of a task that the page and top show in addition to its report.
template <>
std::span<const ReportField<LiveTask>> report_fields();

/// Adds a field to the list of TaskReport while the object lives. No other thread may read the list
/// when the object is made or destroyed.
class AddedReportField {
 public:
  explicit AddedReportField(ReportField<TaskReport> field);
  ~AddedReportField();
  AddedReportField(const AddedReportField&) = delete;
  AddedReportField& operator=(const AddedReportField&) = delete;
};

/// Calls visit(place) with the place of the field, which is a FieldPlace or a DerivedField.
template <typename Record, typename Visit>
void visit_field(const ReportField<Record>& field, const Record& record, Visit&& visit) {
  if (field.is_of != nullptr && !field.is_of(record)) return;
  std::visit(std::forward<Visit>(visit), field.value);
}

}  // namespace paceline
