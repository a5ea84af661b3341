// If the run is to be predicted (RunOptions::predicts), the store first makes ten steps alone. It
// learns when each variable was needed and each gradient was there, and plans a session whose nodes
// take these times: the run's observers predict that session like any other. `paceline predict --
// COMMAND` only starts the command, with its flags in $PACELINE_PREDICT (cli/flags/job_flags.h).
#include "paceline/external_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <utility>

#include "base/failure_text.h"
#include "base/nearest.h"
#include "base/print_text.h"
#include "paceline/error.h"
#include "run/log.h"
#include "train/external_board.h"
#include "train/external_model.h"
#include "train/worker_device.h"

namespace paceline {
namespace {

// The program's own work is what a session's thread waits for.
struct Unfinished {};

void check_cluster(const Cluster& cluster) {
  if (cluster.towers > 1) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[store] --towers {}: the other code computes on all its devices, and "
                            "hands over one gradient",
                            cluster.towers));
  }
  if (!cluster.sync_batch_norm) return;
  throw Error(ErrorCode::kInvalidArgument,
              "[store] --sync-batch-norm: batch norm is the other code's here");
}

// A prediction learns from so many steps.
constexpr int kStepsToLearn = ExternalBoard::kUntimed + ExternalBoard::kTimed;
constexpr double kLeastKnown = 1e-9;  // seconds; 0 would say that nothing is known

// The median, which one slow step does not change; 0 of what no step did.
double usual(ExternalTimes::OfSteps times) {
  if (times.empty()) return 0;
  const auto middle = times.begin() + std::ptrdiff_t(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

// The variables in the order in which these steps needed them, with what passed between the moments
// at which they were needed and their gradients were there.
std::vector<ExternalVariable> with_times(const std::vector<ExternalVariable>& variables,
                                         const ExternalTimes& times) {
  std::vector<std::size_t> order(variables.size());
  for (std::size_t v = 0; v < order.size(); ++v) order[v] = v;
  std::ranges::stable_sort(order, {}, [&](std::size_t v) { return usual(times.needed[v]); });
  std::vector<ExternalVariable> made;
  double now = 0;
  const auto until = [&](const ExternalTimes::OfSteps& moments) {
    const double passed = std::max(0.0, usual(moments) - now);
    now += passed;
    return std::max(kLeastKnown, passed);
  };
  for (const std::size_t v : order) {
    made.push_back(variables[v]);
    made.back().seconds_to_need = until(times.needed[v]);
  }
  for (std::size_t i = order.size(); i-- > 0;) {
    made[i].seconds_to_ready = until(times.handed_over[order[i]]);
  }
  // What is left of the step is of no variable.
  const auto last = std::ranges::find(made, false, &ExternalVariable::frozen);
  last->seconds_to_ready += until(times.ended);
  return made;
}

// One process that leaves nothing behind, and that nobody looks at.
RunOptions to_learn(const RunOptions& run) {
  RunOptions learns;
  learns.quiet = true;
  learns.seed = run.seed;
  learns.end_asked = run.end_asked;
  return learns;
}

Cluster to_learn(const Cluster& cluster) {
  Cluster alone;
  alone.threads = cluster.threads;
  alone.device = cluster.device;
  alone.precision = cluster.precision;
  return alone;
}

}  // namespace

class ExternalStore::Impl {
 public:
  Impl(std::vector<ExternalVariable> variables, const Rule& with_rule, const Cluster& on,
       const RunOptions& run_with, const ExternalStoreOptions& with)
      : board(std::make_shared<ExternalBoard>(std::move(variables), with.check_wait)),
        rule(with_rule),
        minimize(with.minimize),
        model(board, rule, minimize),
        cluster(on),
        run(run_with),
        options(with.session),
        exceptions(std::uncaught_exceptions()) {
    check_cluster(cluster);
    run.end_asked = [this, by_program = run_with.end_asked] {
      return end_asked || (by_program && by_program());
    };
    if (options.examples_per_step == 0) {
      options.examples_per_step = 1;
      options.unit = "steps";
    }
    thread = std::thread([this] { work(); });
    try {
      call([this] { make_session(); });
    } catch (...) {
      end_thread();
      throw;
    }
  }
  ~Impl() {
    if (!thread.joinable()) return;
    if (is_unwinding() && !board->is_open()) lost = true;
    try {
      close("the program ended in the middle of a step");
    } catch (const std::exception& error) {
      say(failure_text(error));
    }
    if (thread.joinable()) end_thread();
  }

  // Once there were enough steps, the observers of the run predict the session that is planned
  // here, and let it not start.
  void learn() {
    if (!run.predicts || predicted || ++learned_of < kStepsToLearn) return;
    predicted = true;
    call([this] {
      const auto learned =
          std::make_shared<ExternalBoard>(with_times(board->variables(), board->times()));
      const ExternalModel timed(learned, rule, minimize, worker_device(cluster).threads);
      const Session planned(timed.training(), cluster, run, options);
    });
  }

  // Calls `task` on the session's thread, and throws what it throws. A wait that ends by an
  // exception of the caller leaves the task to that thread.
  void call(std::function<void()> task) {
    begin(std::move(task));
    wait_done();
  }
  void begin(std::function<void()> task) {
    board->wait([this] { return !busy; });
    board->change([&] {
      todo = std::move(task);
      busy = true;
      failure = nullptr;
    });
  }
  void wait_done() {
    board->wait([this] { return !busy; });
    if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
  }

  void check_between_steps(const char* what) const {
    board->check();
    if (!thread.joinable()) {
      throw Error(ErrorCode::kFailedPrecondition,
                  fmt::format("[store] {} after it was closed", what));
    }
    if (!board->is_open()) return;
    throw Error(ErrorCode::kFailedPrecondition,
                fmt::format("[store] {} in a step: end_step comes first", what));
  }

  void close(const std::string& why_abandoned) {
    if (!thread.joinable()) return;
    const bool says_why = has_failed();
    if (board->is_open()) abandon(why_abandoned);
    const bool failed = has_failed();
    if (failed) end_asked = true;
    std::exception_ptr error;
    try {
      call([this, failed] { end_session(failed); });
    } catch (...) {
      error = std::current_exception();
      end_asked = true;  // whatever the thread still waits for
    }
    end_thread();
    if (error) std::rethrow_exception(error);
    if (says_why || lost || !run.predicts || predicted) return;
    throw Error(ErrorCode::kFailedPrecondition,
                fmt::format("[store] nothing is predicted: the program has ended after {} of the "
                            "{} steps from which a prediction learns",
                            learned_of, kStepsToLearn));
  }
  // Between two steps a step that fails at once tells the session so.
  void abandon(const std::string& why) {
    if (has_failed() || session == nullptr) return;
    if (board->is_open()) {
      end_asked = true;
      board->abandon(why);
    } else {
      begin(step_of([why](Feed&) { throw Error(ErrorCode::kCancelled, why); }));
    }
    board->wait([this] { return !busy; });
  }
  bool begin_step(const ExternalStep& step) {
    if (predicted) return false;
    begin(step_of([this, step](Feed& feed) {
      if (step.position) feed.position() = *step.position;
      model.feed(feed, step.rows);
    }));
    board->wait([this] { return board->is_open() || !busy; });
    if (board->is_open()) return true;
    wait_done();
    return false;
  }

  bool has_failed() const {
    try {
      board->check();
      return false;
    } catch (...) {
      return true;
    }
  }
  bool is_unwinding() const { return std::uncaught_exceptions() > exceptions; }
  void say(const std::string& line) const {
    if (run.log != nullptr) return run.log->error(line);
    print_text(stderr, line + "\n");
  }

  const std::shared_ptr<ExternalBoard> board;
  const Rule rule;
  const MinimizeOptions minimize;
  ExternalModel model;
  const Cluster cluster;
  RunOptions run;
  SessionOptions options;
  std::atomic<bool> end_asked{false};
  const int exceptions;  // under way when the store was made
  int learned_of = 0;    // steps, where the run is to be predicted
  bool predicted = false;
  std::vector<std::shared_ptr<const void>> owners;  // of memory in which the session keeps values
  std::unique_ptr<Session> session;                 // of its thread alone
  std::optional<StepResult> made;                   // by the last step
  bool lost = false;                                // the program's own exception ends the store
  bool busy = false;                                // with `todo`; under the board's lock
  bool over = false;                                // the thread ends; the same
  std::function<void()> todo;                       // the same
  std::exception_ptr failure;                       // of the last task; the same
  std::thread thread;

 private:
  void make_session() {
    const bool learns = run.predicts;
    session = std::make_unique<Session>(model.training(), learns ? to_learn(cluster) : cluster,
                                        learns ? to_learn(run) : run, options);
  }
  std::function<void()> step_of(std::function<void(Feed&)> feed) {
    return [this, feed = std::move(feed)] {
      made.reset();
      try {
        made = session->step(feed);
      } catch (...) {
        board->close(std::current_exception());
        throw;
      }
      board->close();
    };
  }
  void work() {
    while (true) {
      board->wait_quietly([this] { return busy || over; });
      if (!busy) return;
      std::exception_ptr error;
      try {
        todo();
      } catch (...) {
        error = std::current_exception();
      }
      board->change([&] {
        todo = {};
        failure = error;
        busy = false;
      });
    }
  }
  void end_thread() {
    board->change([this] { over = true; });
    thread.join();
  }
  // As a session that its own thread leaves by an exception: others see that this task was lost.
  void end_session(bool failed) {
    if (lost) {
      try {
        const std::unique_ptr<Session> ends = std::move(session);
        throw Unfinished();
      } catch (const Unfinished&) {
        return;
      }
    }
    if (!failed && session != nullptr && session->last_step().step > 0) session->save();
    if (session == nullptr) return;
    // Others see by the end of its connections that a task was lost.
    failed&& cluster.distributed() ? session.reset() : session->close();
  }
};

ExternalStore::ExternalStore(std::vector<ExternalVariable> variables, const Rule& rule,
                             const Cluster& cluster, const RunOptions& run,
                             const ExternalStoreOptions& options)
    : impl_(std::make_unique<Impl>(std::move(variables), rule, cluster, run, options)) {}

ExternalStore::~ExternalStore() = default;

int ExternalStore::variables() const { return int(impl_->board->variables().size()); }

const ExternalVariable& ExternalStore::variable(int index) const {
  return impl_->board->variable(index);
}

int ExternalStore::index_of(std::string_view name) const {
  const std::vector<ExternalVariable>& all = impl_->board->variables();
  const auto found = std::ranges::find(all, name, &ExternalVariable::name);
  if (found != all.end()) return int(found - all.begin());
  std::vector<std::string_view> names;
  names.reserve(all.size());
  for (const ExternalVariable& variable : all) names.emplace_back(variable.name);
  throw Error(ErrorCode::kNotFound,
              fmt::format("[store] there is no variable '{}'{}", name, did_you_mean(name, names)));
}

bool ExternalStore::begin_step(const ExternalStep& step) {
  impl_->check_between_steps("begin_step");
  impl_->model.check(step.rows);
  return impl_->begin_step(step);
}

TensorView ExternalStore::need(int variable) { return impl_->board->need(variable); }

bool ExternalStore::keep_in(int variable, const TensorView& memory,
                            std::shared_ptr<const void> owner) {
  // A prediction learns when each gradient is there, which a program that lends memory may not say.
  if (impl_->run.predicts) return false;
  const std::string& name = impl_->board->variable(variable).name;
  bool kept = false;
  with_session([&](Session& session) { kept = session.move_value(name, memory); });
  if (kept) impl_->owners.push_back(std::move(owner));
  return kept;
}

void ExternalStore::ready(int variable, const TensorView& gradient,
                          std::shared_ptr<const void> owner) {
  impl_->board->hand_over(variable, {}, gradient, false, std::move(owner));
}

void ExternalStore::ready(int variable, std::span<const std::int32_t> ids, const TensorView& rows,
                          std::shared_ptr<const void> owner) {
  impl_->board->hand_over(variable, ids, rows, true, std::move(owner));
}

StepResult ExternalStore::end_step(std::optional<double> loss) {
  impl_->board->end(loss);
  impl_->wait_done();
  const StepResult made = impl_->made.value();
  impl_->learn();
  return made;
}

void ExternalStore::abandon(const std::string& why) { impl_->abandon(why); }

bool ExternalStore::in_step() const { return impl_->board->is_open(); }

bool ExternalStore::predicted() const { return impl_->predicted; }

void ExternalStore::set_learning_rate_factor(int variable, double factor) {
  impl_->model.set_learning_rate_factor(variable, factor);
}

void ExternalStore::interrupt() { impl_->end_asked = true; }

void ExternalStore::with_session(const std::function<void(Session&)>& use) {
  impl_->check_between_steps("with_session");
  impl_->call([&, this] { use(*impl_->session); });
}

Tensor ExternalStore::read(int variable) {
  Tensor value;
  const std::string& name = impl_->board->variable(variable).name;
  with_session([&](Session& session) { value = session.variable(name); });
  return value;
}

void ExternalStore::close() { impl_->close("closed in the middle of a step"); }

}  // namespace paceline
