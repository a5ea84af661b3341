#include "train/session_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <utility>

#include "base/failure_text.h"
#include "base/grouped_digits.h"
#include "base/print_text.h"
#include "base/printed.h"
#include "paceline/error.h"
#include "params/protocol/record_set.h"
#include "params/strategy/strategies.h"
#include "run/interrupt.h"
#include "run/log.h"
#include "run/program_run.h"
#include "run/report/run_folder.h"

namespace paceline {
namespace {

// A quiet worker names what it waits for only after this time, when the user would wonder.
constexpr Duration kQuietWait = std::chrono::seconds(5);
constexpr double kAtOnce = 1e-3;  // seconds
// Tasks that a user starts by hand meet within this time.
constexpr Duration kMeetWithin = std::chrono::seconds(30);

// True when the run goes on from a checkpoint that has all its steps.
bool has_made_all(const RunOptions& run) {
  return run.resume && run.steps && !run.out.empty() && saved_step(run).value_or(-1) >= *run.steps;
}

}  // namespace

SessionJob::SessionJob(const Options& options, const std::vector<VariableSpec>& variables)
    : cluster_(options.cluster),
      interrupt_(program_run_of(options.run).interrupt),
      end_asked_(options.run.end_asked),
      log_(program_run_of(options.run).log),
      quiet_(options.run.quiet),
      lost_at_(program_run_of(options.run).lost_at) {
  if (cluster_.task.role == TaskId::Role::kPs) {
    throw Error(ErrorCode::kUsage, cluster_.task.str() +
                                       " serves, it does not train: a session is "
                                       "for workers");
  }
  if (cluster_.distributed() && log_ != nullptr) {
    log_->debug(fmt::format("cluster {}, cluster id {}, link {}", cluster_.spec.str(),
                            cluster_.cluster_id, cluster_.links.kind));
  }
  JoinOptions how;
  how.cluster = cluster_;
  how.seed = options.run.seed;
  how.data = options.data;
  how.last_step = options.run.steps.value_or(0);
  how.pool = options.pool;
  how.account = options.account;
  if (options.account != nullptr) how.clock = &options.account->clock();
  how.timeline = options.timeline;
  how.progress = options.progress;
  how.say = [this](const std::string& line) { say(line); };
  if (options.run.quiet) how.say_after = kQuietWait;
  how.check_interrupt = [this] { check_interrupt(); };
  joined_ = join(how, variables, options.run);
}

// A task that has joined finds out by itself when the training is over. A task that comes back
// after the others have ended would wait for them in vain; a launcher or the last checkpoint tells
// it that the training is over.
JoinedStrategy SessionJob::join(JoinOptions how, const std::vector<VariableSpec>& variables,
                                const RunOptions& run) const {
  struct LeftAlone {};
  const std::function<void()> check = how.check_interrupt;
  const Clock& clock = *how.clock;
  how.check_interrupt = [this, check, &run, &clock, look_at = clock.now() + kMeetWithin]() mutable {
    check();
    if (joined_.store != nullptr) return;
    if (interrupt_ != nullptr && interrupt_->left_alone()) throw LeftAlone();
    if (clock.now() < look_at) return;
    look_at = clock.now() + kMeetWithin;
    if (has_made_all(run)) throw LeftAlone();
  };
  try {
    return join_strategy(how, variables);
  } catch (const LeftAlone&) {
    if (!must_make_the_rest(run)) {
      throw JobIsOver(
          fmt::format("the training was over before {} joined it", cluster_.task.str()));
    }
  }
  say(fmt::format("{} is alone, and makes the steps that no checkpoint has", cluster_.task.str()));
  how.check_interrupt = check;
  how.cluster.links.join_timeout_s = kAtOnce;
  return join_strategy(how, variables);
}

// True when the others of an all-reduce have ended and their last steps were not saved.
bool SessionJob::must_make_the_rest(const RunOptions& run) const {
  const bool saves = cluster_.is_chief() && !run.out.empty() && !run.save_every.never();
  if (!saves || !run.steps || kind_of(cluster_) != ClusterKind::kWorkersOnly) return false;
  return saved_step(run).value_or(-1) < *run.steps;
}

// A quiet job has only lines about trouble, so the log has them as warnings.
void SessionJob::say(const std::string& line) const {
  if (left_) return;
  if (log_ != nullptr) return log_->write(quiet_ ? LogLevel::kWarning : LogLevel::kInfo, line);
  print_text(stdout, fmt::format("{}\n", line));
  std::fflush(stdout);
}

SessionJob::~SessionJob() {
  if (!failed_) leave();
}

void SessionJob::leave() {
  if (left_.exchange(true)) return;
  try {
    control().set_done();
    control().goodbye();
  } catch (const std::exception& error) {
    if (log_ != nullptr)
      log_->warning(fmt::format("could not say goodbye: {}", failure_text(error)));
  }
}

void SessionJob::initialise(const std::function<InitialState()>& make) {
  if (!cluster_.is_chief() || control().was_initialised()) {
    control().wait_initialised();
  } else {
    InitialState beginning = make();
    say_if_records_begin_anew(beginning.tasks);
    control().restore(beginning.tasks);
    store().write(std::move(beginning.values), beginning.global_step);
    if (store().global_step() != beginning.global_step) {
      say(fmt::format("counts on from step {}: local steps begin with an exchange",
                      store().global_step()));
    }
    if (!beginning.tasks.empty()) restored_ = std::move(beginning.tasks.front());
  }
  if (!restored_) restored_ = control().restored();
  if (restored_) forget_unused(restored_->position);  // the job keeps them
  first_step_ = control().next_step();
  say_what_is_lost();
}

void SessionJob::say_if_records_begin_anew(std::span<const TaskState> states) const {
  if (!cluster_.shares_records() || states.empty() || unused_of(states.front().position)) return;
  say("the checkpoint was not saved with --shard dynamic: its place in the data is not known, and "
      "an epoch begins");
}

void SessionJob::say_what_is_lost() const {
  if (!lost_at_) return;
  const std::int64_t now = joined_.store->global_step();
  say(fmt::format("goes on from global step {}: {} lost", grouped_digits(now),
                  counted(std::max<std::int64_t>(*lost_at_ - now, 0), "global step")));
}

bool SessionJob::wait_all_done(Deadline deadline) {
  control().set_done();
  return control().wait_all_done(deadline);
}

// Also called while the task joins the job, when joined_.control is still null.
bool SessionJob::interrupted() const {
  return (interrupt_ != nullptr && interrupt_->interrupted()) || (end_asked_ && end_asked_()) ||
         (joined_.control != nullptr && joined_.control->stop_asked());
}

void SessionJob::check_interrupt() const {
  if (interrupted()) throw WaitInterrupted(cluster_.task.str() + " was interrupted");
}

}  // namespace paceline
