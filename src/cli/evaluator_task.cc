#include "cli/evaluator_task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <iterator>
#include <map>
#include <ranges>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/grouped_digits.h"
#include "base/print_text.h"
#include "checkpoint/best_keeper.h"
#include "checkpoint/checkpoint_reader.h"
#include "paceline/error.h"
#include "run/program_run.h"
#include "run/report/folder_lock.h"
#include "run/report/run_folder.h"

namespace paceline {

namespace {

// The folder is read at this interval, since it may lie on a shared disk that reports no new files.
constexpr int kLookEveryMs = 2000;
constexpr int kLowestPriority = 19;

/// Returns the numbers of an evaluation, under the names that the chief also uses.
std::map<std::string, double> numbers_of(const Evaluation& evaluation) {
  return {{"loss/valid", evaluation.loss}, {"precision/valid", evaluation.precision}};
}

}  // namespace

CheckpointEvaluations::CheckpointEvaluations(const RunOptions& run, EvaluateCheckpoint evaluate,
                                             const Log& log)
    : out_(run.out),
      checkpoints_(checkpoints_folder(run)),
      evaluate_(std::move(evaluate)),
      log_(log) {
  run_.out = run.out;
  run_.resume = run_.quiet = true;
  run_.evaluates = run.out;
  run_.seed = run.seed;
  own_program_run(run_).log = &log;
}

bool CheckpointEvaluations::evaluate_newest() {
  const Checkpoints::Newest found = checkpoints_.newest_whole(WholeCheck::kSizes);
  for (const FoundCheckpoint& torn : found.torn) say_passed_over(torn);
  const auto& newest = found.whole;
  if (!newest || newest->step == looked_at_) return false;
  try {
    last_ = evaluate_(run_);
  } catch (const Error&) {
    // While this checkpoint was read, the run may have deleted it for a newer one.
    const auto now = checkpoints_.newest_whole(WholeCheck::kSizes).whole;
    if (!now || now->step == newest->step) throw;
    return true;
  }
  looked_at_ = newest->step;
  // The newest checkpoint's files have the right sizes, but not the right bytes, so an older
  // checkpoint was evaluated.
  if (last_.global_step < looked_at_) {
    say_passed_over({newest->path, newest->step, why_torn(newest->path, WholeCheck::kChecksums)});
    if (last_.global_step == last_step_) return true;
  }
  if (last_step_ < 0 || last_.precision > best_.precision) best_ = last_;
  last_step_ = last_.global_step;
  print_text(stdout,
             fmt::format("step {}: loss {:.4f}, precision {:.4f}, best precision {:.4f}\n",
                         grouped_digits(last_step_), last_.loss, last_.precision, best_.precision));
  std::fflush(stdout);
  summarise();
  report();
  return true;
}

void CheckpointEvaluations::say_passed_over(const FoundCheckpoint& torn) {
  if (torn.torn.empty() || !passed_over_.insert(torn.step).second) return;
  log_.warning(passed_over_text(torn));
}

void CheckpointEvaluations::summarise() {
  if (no_summaries_) return;
  try {
    if (!summaries_) summaries_.emplace(out_ + "/summaries/evaluator", last_step_);
    std::vector<SummaryValue> values;
    for (const auto& [name, value] : numbers_of(last_)) values.push_back({name, float(value)});
    values.push_back({"precision/best", float(best_.precision)});
    summaries_->add({.step = last_step_, .values = std::move(values)});
  } catch (const Error& error) {
    no_summaries_ = true;
    log_.warning(fmt::format("{}; the evaluator goes on without summaries", error.what()));
  }
}

// Reports the numbers to the run, which marks its best checkpoint. If the run has ended, takes the
// lock of its folder and marks the checkpoint itself.
void CheckpointEvaluations::report() {
  if (no_reports_) return;
  try {
    const std::optional<BestMark> mark = checkpoints_.mark();
    if (!mark) return;
    const std::map<std::string, double> numbers = numbers_of(last_);
    if (!numbers.contains(mark->by.name)) {
      no_reports_ = true;
      log_.warning(
          fmt::format("the run keeps its best checkpoint by {}, and an evaluation gives {}",
                      mark->by.name, fmt::join(std::views::keys(numbers), ", ")));
      return;
    }
    checkpoints_.report({last_step_, numbers});
    if (is_locked(out_)) return;
    const FolderLock lock(out_);
    take_late_reports(checkpoints_, [this](const std::string& line) { log_.info(line); });
  } catch (const Error& error) {
    // A new run has just begun in the folder, and reads the report.
    if (error.code() == ErrorCode::kUsage) return;
    log_.warning(fmt::format("{}; the run is not told of this evaluation", error.what()));
  }
}

void CheckpointEvaluations::print_last_line() const {
  if (last_step_ < 0) {
    throw Error(ErrorCode::kNotFound, fmt::format("there is no whole checkpoint in {}", out_));
  }
  print_text(stdout, fmt::format("precision {:.4f}, best {:.4f} at step {}\n", last_.precision,
                                 best_.precision, best_.global_step));
}

void follow_run(CheckpointEvaluations& evaluations, const std::string& out,
                const Interrupt& interrupt, const FollowOptions& options) {
  const Deadline begins = Deadline::after(options.begins_within);
  for (bool first = true, began = false, ended = false;;) {
    // Checks first whether the run has ended, so that evaluate_newest() then sees all that the run
    // has saved.
    const bool goes_on = options.ended < 0 ? is_locked(out) : !ended;
    const bool found = evaluations.evaluate_newest();
    // A short run may begin and end between two checks; then the checkpoint that it left shows that
    // it ran.
    began = began || goes_on || ended || (found && !first);
    first = false;
    if (found) continue;
    if (!goes_on && (began || begins.passed())) return;
    pollfd watched[] = {{interrupt.fd(), POLLIN, 0}, {options.ended, POLLIN, 0}};
    poll(watched, std::size(watched), kLookEveryMs);  // passes over −1
    if (watched[0].revents != 0) {
      throw Error(ErrorCode::kCancelled, "the evaluation was interrupted");
    }
    ended = watched[1].revents != 0;
  }
}

void run_evaluator(const Cluster& cluster, const RunOptions& run, EvaluateCheckpoint evaluate,
                   const Log& log) {
  if (run.out.empty()) {
    throw Error(ErrorCode::kUsage,
                "--out DIR is missing: an evaluator reads the checkpoints that the chief writes "
                "there");
  }
  setpriority(PRIO_PROCESS, 0, kLowestPriority);
  const Interrupt interrupt;
  CheckpointEvaluations evaluations(run, std::move(evaluate), log);
  const std::chrono::duration<double> join(cluster.links.join_timeout_s);
  if (!cluster.launch.launched && !is_locked(run.out)) {
    log.info(fmt::format("waits up to {:g} s for a run that writes to {}", join.count(), run.out));
  }
  follow_run(
      evaluations, run.out, interrupt,
      {std::chrono::duration_cast<Duration>(join), cluster.launch.launched ? STDIN_FILENO : -1});
  evaluations.print_last_line();
}

}  // namespace paceline
