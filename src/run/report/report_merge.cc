#include <algorithm>
#include <cmath>
#include <string>

#include "paceline/cluster.h"
#include "run/report/report.h"
#include "run/report/report_fields.h"

namespace paceline {

namespace {

bool before(const TaskReport& a, const TaskReport& b) {
  const TaskId left = TaskId::parse(a.task), right = TaskId::parse(b.task);
  if (left.role != right.role) return left.role == TaskId::Role::kWorker;
  return left.index < right.index;
}

// Puts workers first and in order, so that a field is taken from worker 0's report if that has it.
std::vector<const Report*> in_task_order(std::span<const Report> reports) {
  std::vector<const Report*> order;
  for (const Report& report : reports) order.push_back(&report);
  std::ranges::stable_sort(order, [](const Report* a, const Report* b) {
    if (a->tasks.empty() || b->tasks.empty()) return !a->tasks.empty() && b->tasks.empty();
    return before(a->tasks.front(), b->tasks.front());
  });
  return order;
}

// Perplexity is exp(mean cost), so its mean over equal parts is the geometric mean.
std::optional<double> mean_perplexity(const std::vector<const Report*>& reports) {
  double log_sum = 0;
  int parts = 0;
  for (const Report* report : reports) {
    const std::optional<double> value = report->value("perplexity", "valid");
    if (!value) continue;
    log_sum += std::log(*value);
    ++parts;
  }
  if (parts == 0) return std::nullopt;
  return std::exp(log_sum / parts);
}

void merge_sections(Report& merged, const Report& report) {
  for (const ReportSection& section : report.sections) {
    for (const auto& [key, value] : section.values) {
      if (!merged.value(section.name, key)) merged.set(section.name, key, value);
    }
  }
}

/// Merges a field of the next report into the merged report, in the way that suits the kind of
/// field.
struct Taker {
  // Takes the larger of two counts: of `accumulate`, `towers` or the global step.
  void operator()(std::int64_t& merged, std::int64_t next, std::int64_t) const {
    merged = std::max(merged, next);
  }
  void operator()(std::optional<std::int64_t>& merged, std::optional<std::int64_t> next,
                  std::optional<std::int64_t>) const {
    merged = std::max(merged, next);  // an empty optional is less than any number
  }
  void operator()(std::vector<TaskReport>& merged, const std::vector<TaskReport>& next,
                  const std::vector<TaskReport>&) const {
    merged.insert(merged.end(), next.begin(), next.end());
  }
  void operator()(std::vector<ReportSection>&, const std::vector<ReportSection>&,
                  const std::vector<ReportSection>&) const {}  // see merge_sections
  template <typename T>
  void operator()(T& merged, const T& next, const T& unknown) const {
    if (merged == unknown) merged = next;
  }
};

}  // namespace

Report merge(std::span<const Report> reports) {
  static const Report empty;
  Report merged;
  const std::vector<const Report*> order = in_task_order(reports);
  for (const Report* report : order) {
    for (const ReportField<Report>& field : report_fields<Report>()) {
      visit_field(field, merged, [&](const auto& place) {
        if constexpr (requires { place.in(merged); }) {
          Taker()(place.in(merged), place.of(*report), place.of(empty));
        }
      });
    }
    merge_sections(merged, *report);
  }
  if (merged.value("perplexity", "valid")) {
    merged.set("perplexity", "valid", mean_perplexity(order));
  }
  return merged;
}

}  // namespace paceline
