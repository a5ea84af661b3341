// If the run is to be predicted (RunOptions::predicts), the store first makes ten steps alone. The
// store learns when each variable was needed and each gradient was there, and plans a session whose
// nodes take these times: the run's observers predict that session like any other. `paceline
// predict -- COMMAND` starts the command, with its flags in $PACELINE_PREDICT
// (cli/flags/job_flags.h), and on request copies of it at once (train/copies_at_once.h).
#include "paceline/external_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/failure_text.h"
#include "base/nearest.h"
#include "base/print_text.h"
#include "paceline/error.h"
#include "paceline/op.h"
#include "paceline/ops.h"
#include "run/log.h"
#include "run/program_run.h"
#include "train/copies_at_once.h"
#include "train/external_board.h"
#include "train/session_inside.h"
#include "train/worker_device.h"

namespace paceline {

/// A model that other code computes, as a graph. One node needs each variable, and another one
/// makes each gradient; their kernels exchange values with the other code on an ExternalBoard. A
/// session trains this graph like any other, so plans, strategies, checkpoints, reports and
/// predictions need no code for such models.
class ExternalModel {
 public:
  /// Throws kInvalidArgument, naming the variable, for one that cannot be trained this way.
  /// `busy_cores` is the number of cores that the other code kept busy while the seconds of the
  /// variables (seconds_to_need, seconds_to_ready) were measured; 0: it was not measured.
  ExternalModel(std::shared_ptr<ExternalBoard> board, const Rule& rule,
                const MinimizeOptions& options, double busy_cores = 0);
  ExternalModel(const ExternalModel&) = delete;
  ExternalModel& operator=(const ExternalModel&) = delete;

  const Training& training() const { return training_; }
  /// Fills the inputs of a step, and opens the step on the board. check() must have accepted
  /// `rows`.
  void feed(Feed& feed, const std::vector<BatchRows>& rows) const;
  /// Throws kInvalidArgument for rows that a variable does not have, and for more rows than the
  /// variable was made for. Throws kNotFound for a variable that does not exist.
  void check(const std::vector<BatchRows>& rows) const;
  void set_learning_rate_factor(int variable, double factor);

 private:
  struct Read {
    Value variable;
    Value ids;    // the ids of the batch, if the variable is read by rows
    Value value;  // as the other code reads it
  };

  OpRegistry ops();
  Read read_of(std::size_t variable);
  Value needs_in_order();
  std::vector<VariableUpdate> gradients(Value forward, std::vector<Value>& all);
  MinimizeOptions with_groups(MinimizeOptions options) const;

  const std::shared_ptr<ExternalBoard> board_;
  // The factors of the learning rates, by variable.
  const std::shared_ptr<std::vector<std::atomic<double>>> factors_;
  // The cores that the other code kept busy while the seconds of the variables were measured; 0:
  // not known.
  const double busy_cores_;
  const OpRegistry ops_;
  Graph graph_;
  std::vector<Read> reads_;
  Training training_;
};

namespace {

constexpr char kVariable[] = "variable";  // an index
constexpr char kByRows[] = "by_rows";

// Tokens only order the kernels; nobody reads their values.
const ValueType kToken{DType::kUInt8, Shape{}};

const ExternalVariable& checked(const ExternalVariable& variable, std::set<std::string>& names) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[store] variable '{}' {}", variable.name, why));
  };
  if (variable.name.empty()) refuse("has no name");
  if (!names.insert(variable.name).second) refuse("is given twice");
  if (!variable.initial.defined()) refuse("has no initial value");
  if (variable.initial.dtype() != DType::kFloat32) {
    refuse(fmt::format("is {}: a store keeps float32 (contributions may travel as bfloat16)",
                       name_of(variable.initial.dtype())));
  }
  if (variable.most_rows < 0) refuse(fmt::format("has {} rows in a step", variable.most_rows));
  if (variable.most_rows > 0 && variable.initial.shape().rank() < 1) {
    refuse("is a scalar, and cannot be read by rows");
  }
  return variable;
}

const std::vector<ExternalVariable>& checked(const std::vector<ExternalVariable>& variables) {
  std::set<std::string> names;
  for (const ExternalVariable& variable : variables) checked(variable, names);
  if (std::ranges::all_of(variables, &ExternalVariable::frozen)) {
    throw Error(ErrorCode::kInvalidArgument, variables.empty()
                                                 ? "[store] there is no variable"
                                                 : "[store] all variables are frozen");
  }
  return variables;
}

int variable_of(const Node& node) { return int(node.attributes().get<std::int64_t>(kVariable)); }

double seconds_of(const Node& node) { return node.attributes().get<double>(kSeconds); }

double busy_cores_of(const Node& node) { return node.attributes().get<double>(kBusyCores); }

void write_token(const KernelCall& call) { *call.outputs.back().as<std::uint8_t>() = 0; }

// Sleeps for the time of the node, in a step that is only tried for its time. On fewer cores than
// the other code kept busy, that time is longer in proportion.
void pass_time(const Node& node, const KernelCall& call) {
  const int here = call.threads == nullptr ? 1 : call.threads->count();
  const double times = std::max(1.0, busy_cores_of(node) / double(here));
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds_of(node) * times));
}

// Predictions divide the time of all kernels in proportion to these costs. Where nothing was
// measured, each element counts one multiplication and addition for its use, and two for its
// gradient.
Cost cost_of(const Node& node, double flops_of_element) {
  const double seconds = seconds_of(node);
  if (seconds > 0) return {.flops = seconds * 1e9, .bytes = 0};
  const double elements = double(node.inputs().back().shape().elements());
  return {.flops = flops_of_element * elements, .bytes = 0};
}

Op without_gradient(std::string name) {
  Op op;
  op.name = std::move(name);
  op.no_gradient = "other code computes it";
  op.stateful = true;
  return op;
}

}  // namespace

ExternalModel::ExternalModel(std::shared_ptr<ExternalBoard> board, const Rule& rule,
                             const MinimizeOptions& options, double busy_cores)
    : board_(std::move(board)),
      factors_(
          std::make_shared<std::vector<std::atomic<double>>>(checked(board_->variables()).size())),
      busy_cores_(busy_cores),
      ops_(ops()),
      graph_(ops_) {
  for (std::atomic<double>& factor : *factors_) factor = 1;
  const std::size_t count = board_->variables().size();
  for (std::size_t v = 0; v < count; ++v) reads_.push_back(read_of(v));
  const Value forward = needs_in_order();
  std::vector<Value> before_loss = {forward};
  std::vector<VariableUpdate> updates = gradients(forward, before_loss);
  const Value loss =
      graph_.add("external_loss", before_loss, {{kSeconds, 0.0}}, "paceline/loss").output(0);
  training_ = train_with(loss, std::move(updates), rule, with_groups(options));
}

OpRegistry ExternalModel::ops() {
  OpRegistry ops = copy_of_builtin_ops();
  Op value = without_gradient("external_value");
  value.infer = [](const OpInputs&) { return std::vector{kToken}; };
  value.cost = [](const Node& node) { return cost_of(node, 2); };
  value.kernel = [board = board_](const Node& node, const KernelCall& call) {
    write_token(call);
    if (!board->is_open()) return pass_time(node, call);
    board->show(variable_of(node), call.inputs.back());
  };
  register_op(ops, std::move(value));

  Op gradient = without_gradient("external_gradient");
  gradient.infer = [](const OpInputs& in) {
    const ValueType& type = in.types.back();
    if (!in.attributes.get<bool>(kByRows)) return std::vector{type, kToken};
    return std::vector{
        {DType::kInt32, Shape{type.shape[0]}}, type, {DType::kInt32, Shape{}}, kToken};
  };
  gradient.cost = [](const Node& node) { return cost_of(node, 4); };
  gradient.kernel = [board = board_](const Node& node, const KernelCall& call) {
    write_token(call);
    const bool by_rows = node.attributes().get<bool>(kByRows);
    if (!board->is_open()) {
      if (by_rows) *call.outputs[2].as<std::int32_t>() = 0;
      return pass_time(node, call);
    }
    by_rows ? board->take_rows(variable_of(node), call) : board->take(variable_of(node), call);
  };
  gradient.first_to_come = [board = board_](std::span<const Node* const> nodes) {
    if (!board->is_open()) return std::size_t{0};
    return board->first_handed_over(nodes.size(),
                                    [&](std::size_t i) { return variable_of(*nodes[i]); });
  };
  gradient.lends = true;
  register_op(ops, std::move(gradient));

  Op loss = without_gradient("external_loss");
  loss.infer = [](const OpInputs&) { return std::vector{ValueType{DType::kFloat64, Shape{}}}; };
  loss.cost = [](const Node&) { return Cost{}; };
  loss.kernel = [board = board_](const Node&, const KernelCall& call) {
    *call.outputs[0].as<double>() = board->is_open() ? board->take_loss() : 0;
  };
  register_op(ops, std::move(loss));
  return ops;
}

ExternalModel::Read ExternalModel::read_of(std::size_t v) {
  const ExternalVariable& of = board_->variables()[v];
  Read read;
  read.variable = graph_.variable(of.name, of.initial.shape(), Initializer::values(of.initial));
  if (of.most_rows == 0) {
    read.value = read.variable;
    return read;
  }
  read.ids = graph_.input("paceline/rows/" + of.name, {of.most_rows}, DType::kInt32);
  read.value = embedding_lookup(read.variable, read.ids);
  return read;
}

Value ExternalModel::needs_in_order() {
  Value token;
  for (std::size_t v = 0; v < reads_.size(); ++v) {
    const ExternalVariable& of = board_->variables()[v];
    std::vector<Value> inputs;
    if (token) inputs.push_back(token);
    inputs.push_back(reads_[v].value);
    token = graph_
                .add("external_value", inputs,
                     {{kVariable, std::int64_t(v)},
                      {kSeconds, of.seconds_to_need},
                      {kBusyCores, busy_cores_}},
                     "paceline/value/" + of.name)
                .output(0);
  }
  return token;
}

// Adds a node for each gradient, from the last variable, whose gradient is expected first, to the
// first one. A gradient's node reads the variable's value, too, so that the value stays until the
// gradient is there. The loss reads frozen variables and rows, so that these stay until then:
// otherwise a gradient could take the memory of rows.
std::vector<VariableUpdate> ExternalModel::gradients(Value forward, std::vector<Value>& all) {
  std::vector<VariableUpdate> updates;
  for (std::size_t left = reads_.size(); left > 0; --left) {
    const std::size_t v = left - 1;
    const ExternalVariable& of = board_->variables()[v];
    if (of.frozen) {
      all.push_back(reads_[v].value);
      continue;
    }
    const Value inputs[] = {forward, reads_[v].value};
    const bool by_rows = of.most_rows > 0;
    const Node& node = graph_.add("external_gradient", inputs,
                                  {{kVariable, std::int64_t(v)},
                                   {kSeconds, of.seconds_to_ready},
                                   {kByRows, by_rows},
                                   {kBusyCores, busy_cores_}},
                                  "paceline/gradient/" + of.name);
    VariableUpdate update{reads_[v].variable, {}, {}, Sgd{}, 0, 0, {}};
    if (by_rows) {
      update.contribution = {node.output(0), node.output(1)};
      update.row_count = node.output(2);
    } else {
      update.contribution.dense = node.output(0);
    }
    all.push_back(node.output(int(node.outputs().size()) - 1));
    if (by_rows) all.push_back(reads_[v].value);
    updates.push_back(std::move(update));
  }
  std::ranges::reverse(updates);
  return updates;
}

// Returns the options with a group for each variable. It has the variable's own options, or else
// those of the program's group to which the variable's name belongs.
MinimizeOptions ExternalModel::with_groups(MinimizeOptions options) const {
  std::vector<VariableGroup> groups;
  for (const VariableGroup& group : options.groups) {
    if (!group.frozen) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[store] group '{}' is frozen: of a store each variable says so itself",
                            group.prefix));
  }
  for (std::size_t v = 0; v < reads_.size(); ++v) {
    const ExternalVariable& of = board_->variables()[v];
    VariableGroup group;
    std::size_t longest = 0;
    for (const VariableGroup& each : options.groups) {
      if (!of.name.starts_with(each.prefix) || each.prefix.size() < longest) continue;
      longest = each.prefix.size();
      group = each;
    }
    if (of.own) group = *of.own;
    group.prefix = of.name;
    const Schedule schedule = group.learning_rate.value_or(options.learning_rate);
    group.learning_rate = Schedule([schedule, factors = factors_, v](std::int64_t step) {
      return schedule.at(step) * (*factors)[v].load();
    });
    groups.push_back(std::move(group));
  }
  // The program's groups follow, so that minimize() refuses a prefix that no variable has.
  groups.insert(groups.end(), options.groups.begin(), options.groups.end());
  options.groups = std::move(groups);
  return options;
}

void ExternalModel::check(const std::vector<BatchRows>& rows) const {
  for (const BatchRows& batch : rows) {
    const ExternalVariable& of = board_->variable(batch.variable);
    const auto refuse = [&](const std::string& why) {
      throw Error(ErrorCode::kInvalidArgument, fmt::format("[store] '{}' {}", of.name, why));
    };
    if (of.most_rows == 0) refuse("is not read by rows");
    if (std::int64_t(batch.ids.size()) > of.most_rows) {
      refuse(fmt::format("is to be read in {} rows, and was made for {} in a step at most",
                         batch.ids.size(), of.most_rows));
    }
    const std::int64_t all = of.initial.shape()[0];
    for (const std::int32_t id : batch.ids) {
      if (id < 0 || id >= all) refuse(fmt::format("has {} rows, and no row {}", all, id));
    }
  }
}

void ExternalModel::feed(Feed& feed, const std::vector<BatchRows>& rows) const {
  std::vector<std::int64_t> counts(reads_.size(), -1);
  const std::vector<std::int32_t> none;
  std::vector<const std::vector<std::int32_t>*> ids(reads_.size(), &none);
  for (const BatchRows& batch : rows) {
    ids[std::size_t(batch.variable)] = &batch.ids;
    counts[std::size_t(batch.variable)] = std::int64_t(batch.ids.size());
  }
  for (std::size_t v = 0; v < reads_.size(); ++v) {
    if (!reads_[v].ids) continue;
    // Elements without an id of their own repeat the first id: to read a row once more costs
    // nothing.
    const std::span<std::int32_t> input = feed.data<std::int32_t>(reads_[v].ids);
    std::ranges::fill(input, ids[v]->empty() ? 0 : ids[v]->front());
    std::ranges::copy(*ids[v], input.begin());
  }
  board_->open(std::move(counts));
}

void ExternalModel::set_learning_rate_factor(int variable, double factor) {
  board_->variable(variable);
  (*factors_)[std::size_t(variable)] = factor;
}

namespace {

// Thrown so that a session is destroyed while an exception unwinds the stack, and counts as failed.
struct Unfinished {};

void check_cluster(const Cluster& cluster) {
  if (cluster.towers > 1) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[store] --towers {}: the other code computes on all its devices, and "
                            "hands over one gradient",
                            cluster.towers));
  }
  if (!cluster.train.sync_batch_norm) return;
  throw Error(ErrorCode::kInvalidArgument,
              "[store] --sync-batch-norm: batch norm is the other code's here");
}

// The number of steps from which a prediction learns.
constexpr int kStepsToLearn = ExternalBoard::kUntimed + ExternalBoard::kTimed;
constexpr double kLeastKnown = 1e-9;  // seconds; 0 would say that nothing is known

// Returns the median, which one slow step does not change; 0 when no step has a time.
double usual(ExternalTimes::OfSteps times) {
  if (times.empty()) return 0;
  const auto middle = times.begin() + std::ptrdiff_t(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

// Returns the variables in the order in which these steps needed them. Each has the time since the
// previous variable was needed, and the time from the next variable's gradient to its own.
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
  // The rest of the step, after the last gradient, counts for the variable whose gradient is ready
  // last.
  const auto last = std::ranges::find(made, false, &ExternalVariable::frozen);
  last->seconds_to_ready += until(times.ended);
  return made;
}

// Returns the options of one process that leaves nothing behind and has no observers.
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
  alone.train.precision = cluster.train.precision;
  return alone;
}

}  // namespace

class ExternalStore::Impl {
 public:
  Impl(std::vector<ExternalVariable> variables, const Rule& with_rule, const Cluster& on,
       const RunOptions& run_with, const ExternalStoreOptions& with)
      : board(std::make_shared<ExternalBoard>(std::move(variables), with.check_wait,
                                              !on.distributed() && on.train.accumulate == 1)),
        rule(with_rule),
        minimize(with.minimize),
        model(board, rule, minimize),
        cluster(on),
        run(run_with),
        options(with.session),
        exceptions(std::uncaught_exceptions()) {
    check_cluster(cluster);
    if (const std::string& gate = program_run_of(run).copy_gate; !gate.empty()) copy.emplace(gate);
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

  // After kStepsToLearn steps, plans a session, once. The observers of the run predict that
  // session, and do not let it start.
  void learn() {
    if (!run.predicts || predicted) return;
    ++learned_of;
    if (copy) return learn_beside_others();
    if (learned_of < kStepsToLearn) return;
    predicted = true;
    call([this] {
      const ExternalTimes times = board->times();
      const auto learned = std::make_shared<ExternalBoard>(with_times(board->variables(), times));
      const ExternalModel timed(learned, rule, minimize, times.busy_cores);
      const Session planned(timed.training(), cluster, run, options);
    });
  }

  // A copy begins the steps that are timed when all copies do, and trains until all have told their
  // paces, so that none of these steps is made beside fewer copies.
  void learn_beside_others() {
    if (learned_of == ExternalBoard::kUntimed) {
      call([this] { predicted = !copy->wait_for_others(); });
    } else if (learned_of == kStepsToLearn) {
      const ExternalTimes times = board->times();
      copy->tell({.seconds = usual(times.ended), .busy_cores = times.busy_cores});
    } else if (learned_of > kStepsToLearn) {
      predicted = copy->is_over();
    }
  }

  // Calls `task` on the session's thread, and throws what it throws. If check_wait throws, the wait
  // ends, and that thread still finishes the task.
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
      end_asked = true;  // ends whatever the thread still waits for
    }
    end_thread();
    if (error) std::rethrow_exception(error);
    if (says_why || lost || !run.predicts || predicted || learned_of >= kStepsToLearn) return;
    throw Error(ErrorCode::kFailedPrecondition,
                fmt::format("[store] nothing is predicted: the program has ended after {} of the "
                            "{} steps from which a prediction learns",
                            learned_of, kStepsToLearn));
  }
  // Abandons the open step. If no step is open, begins one that fails at once with `why`, so that
  // the session ends with this reason.
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
    if (const Log* const log = program_run_of(run).log) return log->error(line);
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
  const int exceptions;  // in flight when the store was made
  // Set in a copy that `paceline predict` runs beside others.
  std::optional<CopyAmongOthers> copy;
  int learned_of = 0;  // the steps from which a prediction has learned
  bool predicted = false;
  // The owners of memory in which the session keeps values.
  std::vector<std::shared_ptr<const void>> owners;
  std::unique_ptr<Session> session;  // used on `thread` alone
  std::optional<StepResult> made;    // the result of the last step
  bool lost = false;                 // the program's own exception ends the store
  // These four are guarded by the board's lock. `busy` is true while the thread has a task to do.
  bool busy = false;
  bool over = false;  // true: the thread is to end
  std::function<void()> todo;
  std::exception_ptr failure;  // of the last task
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
  // If this task is lost, ends the session as an exception on its thread would, so that other tasks
  // see the loss.
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
    // Other tasks see that this one was lost when its connections end.
    failed&& cluster.distributed() ? session.reset() : SessionInside(*session).close();
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
  // A prediction learns when each gradient is there. A program whose memory holds the values may
  // say so only at the end of the step.
  if (impl_->run.predicts) return false;
  const std::string& name = impl_->board->variable(variable).name;
  bool kept = false;
  with_session([&](Session& session) { kept = SessionInside(session).move_value(name, memory); });
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
  with_session([&](Session& session) { value = session.variables().get(name); });
  return value;
}

void ExternalStore::close() { impl_->close("closed in the middle of a step"); }

}  // namespace paceline
