#include <algorithm>
#include <cmath>
#include <string>

#include "paceline/cluster.h"
#include "run/report/report.h"

namespace paceline {

namespace {

bool before(const TaskReport& a, const TaskReport& b) {
  const TaskId left = TaskId::parse(a.task), right = TaskId::parse(b.task);
  if (left.job != right.job) return left.job == TaskId::Job::kWorker;
  return left.index < right.index;
}

// Workers first and in order, so that "the first that has it" is worker 0 where it has it.
std::vector<const Report*> in_task_order(std::span<const Report> reports) {
  std::vector<const Report*> order;
  for (const Report& report : reports) order.push_back(&report);
  std::ranges::stable_sort(order, [](const Report* a, const Report* b) {
    if (a->tasks.empty() || b->tasks.empty()) return !a->tasks.empty() && b->tasks.empty();
    return before(a->tasks.front(), b->tasks.front());
  });
  return order;
}

// Perplexity is exp(mean cost), so the mean of equal parts is the geometric one.
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

}  // namespace

Report merge(std::span<const Report> reports) {
  Report merged;
  const std::vector<const Report*> order = in_task_order(reports);
  if (!order.empty()) merged.precision = order.front()->precision;
  for (const Report* report : order) {
    if (merged.model.empty()) merged.model = report->model;
    if (merged.strategy.empty()) merged.strategy = report->strategy;
    if (merged.tls.empty()) merged.tls = report->tls;
    if (!merged.expected) merged.expected = report->expected;
    merged.accumulate = std::max(merged.accumulate, report->accumulate);
    merged.towers = std::max(merged.towers, report->towers);
    merged.tasks.insert(merged.tasks.end(), report->tasks.begin(), report->tasks.end());
    if (!merged.cores) merged.cores = report->cores;
    if (merged.flags.empty()) merged.flags = report->flags;
    if (!merged.first_loss) merged.first_loss = report->first_loss;
    if (!merged.last_loss) merged.last_loss = report->last_loss;
    if (!merged.loss_begin) merged.loss_begin = report->loss_begin;
    if (!merged.loss_end) merged.loss_end = report->loss_end;
    // None is less than any.
    merged.global_step = std::max(merged.global_step, report->global_step);
    if (merged.error.empty()) merged.error = report->error;
    merge_sections(merged, *report);
  }
  if (merged.value("perplexity", "valid")) {
    merged.set("perplexity", "valid", mean_perplexity(order));
  }
  return merged;
}

}  // namespace paceline
