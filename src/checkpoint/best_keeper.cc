#include "checkpoint/best_keeper.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <utility>

#include "paceline/error.h"

namespace paceline {

BestKeeper::BestKeeper(const Checkpoints& checkpoints, const BestBy& by, Say say)
    : checkpoints_(checkpoints), say_(std::move(say)) {
  const std::optional<BestMark> before = checkpoints_.mark();
  mark_ = before && before->by == by ? *before : BestMark{by};
  if (before && before->best && !mark_.best) {
    say_(
        fmt::format("the best checkpoint so far, of step {}, is that by {}: by {} the best is "
                    "sought anew",
                    before->best->step, before->by.name, by.name));
  }
  if (mark_.best) {
    const std::string torn = why_torn(checkpoints_.path_of(mark_.best->step), WholeCheck::kSizes);
    if (!torn.empty()) {
      say_(fmt::format("the best checkpoint so far is not whole: {}; the best is sought anew",
                       torn));
      mark_.best.reset();
    }
  }
  if (mark_ != before) checkpoints_.set_mark(mark_);
}

bool BestKeeper::note(std::int64_t step, double value) {
  const bool better = mark_.best ? mark_.by.better(value, mark_.best->value) : std::isfinite(value);
  if (!better || !why_torn(checkpoints_.path_of(step), WholeCheck::kSizes).empty()) return false;
  const BestMark next = {mark_.by, BestMark::Checkpoint{step, value}};
  checkpoints_.set_mark(next);
  mark_ = next;
  say_(fmt::format("the best checkpoint so far is that of step {}: {} {:.6g}", step, mark_.by.name,
                   value));
  return true;
}

void BestKeeper::take_reports() {
  for (const std::string& path : checkpoints_.reports()) {
    try {
      const EvaluationReport report = checkpoints_.read_report(path);
      const auto number = report.numbers.find(mark_.by.name);
      if (number != report.numbers.end()) note(report.step, number->second);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kDataLoss) throw;
      say_(fmt::format("passes over an evaluation: {}", error.what()));
    }
    checkpoints_.remove_report(path);
  }
}

void take_late_reports(const Checkpoints& checkpoints, const BestKeeper::Say& say) {
  const std::optional<BestMark> mark = checkpoints.mark();
  if (mark && !checkpoints.reports().empty()) {
    BestKeeper(checkpoints, mark->by, say).take_reports();
  }
}

}  // namespace paceline
