#include "explain/cause_watch.h"

#include "explain/explain.h"
#include "explain/report_window.h"
#include "explain/run_facts.h"

namespace paceline {
namespace {

constexpr double kWindow = 3, kStays = 5;  // seconds

bool same(const Finding& a, const Finding& b) { return a.cause == b.cause && a.task == b.task; }

}  // namespace

std::string CauseWatch::look(const Report& run, double seconds) {
  reports_.emplace_back(seconds, run);
  // The newest report that is at least one window old stays in front.
  while (reports_.size() > 1 && reports_[1].first <= seconds - kWindow) reports_.pop_front();
  if (seconds - reports_.front().first < kWindow) return "";
  const Report window = report_between(reports_.front().second, run);
  const RunFacts facts(window);
  if (facts.workers().empty()) return "";
  Finding now = explain(window);
  if (now.cause == Limit::kNotKnown) now = {};
  if (!same(now, seen_)) {
    seen_ = now;
    seen_since_ = seconds;
  }
  // A task that stood still is running again by the time this is noticed.
  const double stays = now.cause == Limit::kStopped ? 0 : kStays;
  if (same(now, told_) || seconds - seen_since_ < stays) return "";
  told_ = now;
  if (!now.is_alarm()) return "Nothing holds the run back any more.";
  return now.text(facts.steps_per_s());
}

}  // namespace paceline
