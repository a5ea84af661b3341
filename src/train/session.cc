#include "paceline/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <utility>

#include "base/copy_bytes.h"
#include "base/cores.h"
#include "base/failure_text.h"
#include "base/grouped_digits.h"
#include "base/nearest.h"
#include "base/print_text.h"
#include "base/printed.h"
#include "checkpoint/checkpoint_reader.h"
#include "graph/gradient_norm.h"
#include "graph/open_graph.h"
#include "kernels/device_kind.h"
#include "kernels/traced_device.h"
#include "net/link_kind.h"
#include "net/tls/link_security.h"
#include "paceline/error.h"
#include "paceline/hooks.h"
#include "params/strategy/strategies.h"
#include "run/interrupt.h"
#include "run/log.h"
#include "run/network_rate.h"
#include "run/program_run.h"
#include "run/report/bad_records_in_words.h"
#include "run/report/run_folder.h"
#include "run/report/staleness_in_words.h"
#include "run/report/task_progress.h"
#include "run/task_devices.h"
#include "run/towers.h"
#include "trace/task_timeline.h"
#include "train/dimensions.h"
#include "train/precision.h"
#include "train/session_impl.h"
#include "train/worker_device.h"

namespace paceline {
namespace {

// Returns the graphs of the trainings, each once.
std::vector<const Graph*> graphs_of(std::span<const Training> trainings) {
  std::vector<const Graph*> graphs;
  for (const Training& training : trainings) {
    if (std::ranges::find(graphs, &training.graph()) == graphs.end()) {
      graphs.push_back(&training.graph());
    }
  }
  return graphs;
}

std::vector<Training> only(Training training) {
  std::vector<Training> trainings;
  trainings.push_back(std::move(training));
  return trainings;
}

}  // namespace

Session::Session(Training training, const Cluster& cluster, const RunOptions& run,
                 const SessionOptions& options)
    : Session(only(std::move(training)), cluster, run, options) {}

Session::Session(std::vector<Training> trainings, const Cluster& cluster, const RunOptions& run,
                 const SessionOptions& options) {
  if (trainings.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "[session] of no training: give it a graph instead");
  }
  const std::vector<const Graph*> graphs = graphs_of(trainings);
  auto usual = std::make_unique<UsualSizes>(trainings, graphs, options);
  SessionObservers observers(usual->planned(cluster, run));
  impl_ = std::make_unique<Impl>(std::move(trainings), graphs, cluster, run, options,
                                 std::move(usual), std::move(observers));
}

Session::Session(const Graph& graph, const Cluster& cluster, const RunOptions& run,
                 const SessionOptions& options) {
  const std::vector<const Graph*> graphs = {&graph};
  auto usual = std::make_unique<UsualSizes>(std::span<const Training>(), graphs, options);
  SessionObservers observers(usual->planned(cluster, run));
  impl_ = std::make_unique<Impl>(std::vector<Training>(), graphs, cluster, run, options,
                                 std::move(usual), std::move(observers));
}

Session::~Session() { impl_->close(*this); }

void Session::add_hook(std::unique_ptr<Hook> hook) { impl_->hooks.push_back(std::move(hook)); }

const RunOptions& Session::run_options() const { return impl_->run_options; }
bool Session::started() const { return impl_->started(); }
const Cluster& Session::cluster() const { return impl_->cluster; }

Session& Session::on_save(std::function<void(TaskPosition&)> tell) {
  if (started()) impl_->saving->on_save(std::move(tell));
  return *this;
}

void Session::save() {
  if (started()) impl_->guarded([&] { impl_->saving->save(); });
}

namespace {

/// Says at the end of a run in how many of the session's steps the loss was infinite or not a
/// number, how many contributions were left out, and which steps those were. A loss can be infinite
/// though all gradients are finite and are applied.
class SkippedSteps : public Hook {
 public:
  /// `skipped` tells how many contributions of this task were left out so far.
  explicit SkippedSteps(std::function<std::int64_t()> skipped) : skipped_(std::move(skipped)) {}
  bool after_step(Session& session, const StepResult& result) override;
  void end(Session& session) override;

 private:
  const std::function<std::int64_t()> skipped_;
  std::int64_t steps_ = 0, losses_ = 0, left_out_ = 0;
  // The first and the last own step, from 0, of which the line tells.
  std::int64_t first_ = -1, last_ = -1;
};

bool SkippedSteps::after_step(Session& /*session*/, const StepResult& result) {
  const bool finite = std::isfinite(result.loss);
  const std::int64_t left_out = skipped_();
  if (!finite || left_out > left_out_) {
    last_ = result.step - 1;  // steps count from 0, as in the message of a worker that stops
    if (first_ < 0) first_ = last_;
  }
  ++steps_;
  losses_ += finite ? 0 : 1;
  left_out_ = left_out;
  return true;
}

void SkippedSteps::end(Session& session) {
  if (first_ < 0) return;
  session.print(
      fmt::format("--on-nan skip: the loss was NaN or infinite in {} of {} steps, and {} "
                  "contribution{} left out, in steps {} to {} of this task",
                  losses_, steps_, left_out_, left_out_ == 1 ? " was" : "s were", first_, last_));
}

std::vector<Training> prepared(std::vector<Training> trainings, OnNan on_nan) {
  if (on_nan != OnNan::kSkip) return trainings;
  for (Training& training : trainings) skip_not_finite(training);
  return trainings;
}

// Without NanGuard, contributions with NaN are applied and do not end the job.
Cluster prepared(Cluster cluster, const SessionOptions& options) {
  if (!options.nan_guard && cluster.train.on_nan == OnNan::kStop)
    cluster.train.on_nan = OnNan::kApply;
  return cluster;
}

}  // namespace

Session::Impl::Impl(std::vector<Training> with, std::vector<const Graph*> all, const Cluster& on,
                    const RunOptions& run_with, const SessionOptions& session_options,
                    std::unique_ptr<UsualSizes> with_usual, SessionObservers with_observers)
    : trainings(prepared(std::move(with), on.train.on_nan)),
      graphs(std::move(all)),
      trained_graphs(trainings.empty() ? 0 : graphs.size()),
      cluster(prepared(on, session_options)),
      run_options(run_with),
      options(session_options),
      usual(std::move(with_usual)),
      console(run_with.quiet, program_run_of(run_with).log),
      observers(std::move(with_observers)),
      exceptions_(std::uncaught_exceptions()) {
  for (const Value& value : usual->options().watch) {
    watched.emplace_back(value.dtype(), value.shape());
  }
  if (!started()) {
    ended = true;
    return;
  }
  show_to_observers();
  options.data_names = kept_names(std::move(options.data_names));
  report.model = options.model;
  report.strategy = strategy_name(cluster);
  if (cluster.distributed()) report.tls = tls_in_words(cluster.links.security);
  report.accumulate = cluster.train.accumulate;
  report.towers = cluster.towers;
  report.precision = cluster.device.cuda_tf32 ? "tf32" : name_of(cluster.train.precision);
  report.flags = program_run_of(run_options).flags;
  report.cores = usable_cores();
  if (cluster.train.on_nan == OnNan::kStop) hooks.push_back(std::make_unique<NanGuard>());
  if (cluster.train.on_nan == OnNan::kSkip) {
    hooks.push_back(std::make_unique<SkippedSteps>([this] { return job->store().skipped(); }));
  }
  try {
    guarded([&] { make_parts(); });
  } catch (...) {
    write_report();
    throw;
  }
}

Session::Impl::~Impl() { finish(); }

void Session::Impl::finish() {
  if (!started() || std::exchange(finished_, true)) return;
  // An exception of the program ends the session here; whoever catches it reports it.
  if (unwinding() && job != nullptr) job->fail();
  if (!unwinding() && report.error.empty()) end_well();
  write_report();
  write_timeline();
}

void Session::Impl::leave() {
  if (!started()) return;
  hooks.clear();
  saving.reset();
  observers.clear();
  if (report.error.empty()) job->leave();
}

void Session::Impl::check_towers() const {
  paceline::check_towers(cluster, usable_cores());
  if (cluster.towers == 1 || !trainings.empty()) return;
  throw Error(ErrorCode::kUsage, fmt::format("--towers {}: towers train together, and this program "
                                             "trains nothing",
                                             cluster.towers));
}

void Session::Impl::make_parts() {
  check_towers();
  device = make_metered_device(make_device(tower_device(cluster, 0), clock), kernel_meter);
  if (cluster.towers > 1) all_cores = std::make_unique<ThreadPool>(worker_device(cluster).threads);
  if (!run_options.timeline.empty()) {
    timeline = std::make_unique<Timeline>(run_options.timeline_first, run_options.timeline_end);
    device = make_traced_device(std::move(device), *timeline);
  }
  const std::vector<VariableSpec> variables = variable_specs(graphs, trainings);
  observers.tell(&SessionObserver::joining);
  job = std::make_unique<SessionJob>(
      SessionJob::Options{.cluster = cluster,
                          .run = run_options,
                          .data = {options.data_names, options.shared_records, options.agreed},
                          .pool = &pool(),
                          .account = &account,
                          .timeline = timeline.get(),
                          .progress = &progress},
      variables);
  observers.tell(&SessionObserver::joined);
  is_watched_ = observers.want_progress();
  job->initialise([&] {
    return make_beginning(graphs, job->store(), run_options, options, cluster.workers(),
                          [this](const std::string& line) { console.print(line); });
  });
  make_towers();
  make_context();
  meter = std::make_unique<StepMeter>(account, options.unit);
  limit = std::make_unique<TrainLimit>(run_options, *meter, job->control());
  if (!trainings.empty()) make_loop();
  make_saving();
}

std::vector<VariableSpec> Session::Impl::variables() const {
  if (!started()) return variable_specs(graphs, trainings);
  const std::span<const VariableSpec> all = job->store().variables();
  return {all.begin(), all.end()};
}

const StepResult& Session::Impl::last_step() const {
  static constexpr StepResult kNone{};
  return loop != nullptr ? loop->last() : kNone;
}

ThreadPool& Session::Impl::pool() { return all_cores ? *all_cores : device->threads(); }

void Session::Impl::make_towers() {
  if (cluster.towers == 1) return;
  towers = std::make_unique<SessionTowers>(SessionTowers::Parts{.store = job->store(),
                                                                .cluster = cluster,
                                                                .clock = clock,
                                                                .pool = pool(),
                                                                .timeline = timeline.get()});
}

void Session::Impl::make_context() {
  if (options.examples_per_step == 0) {
    options.examples_per_step = first_dimension_of_inputs(*graphs[0]);
  }
  examples = {options.examples_per_step, usual->of(options.examples_per_step)};
  options.examples_per_step = examples.usual * cluster.towers;
  usual->options().examples_per_step = options.examples_per_step;
  rewrite = make_rewrite();
  normals = std::make_shared<InputNormals>(run_options.seed, cluster.task.index);
  ParameterStore& store = towers ? towers->store().of(0) : job->store();
  const DeviceContext::Parts parts{.store = store,
                                   .device = *device,
                                   .step_account = account,
                                   .evaluation_account = evaluation_account,
                                   .rewrite = rewrite,
                                   .fused_update = run_options.fused_update,
                                   .timeline = timeline.get(),
                                   .normals = normals,
                                   .seed = run_options.seed,
                                   .task = cluster.task.index,
                                   .examples = examples};
  context = std::make_unique<DeviceContext>(parts);
  if (towers) towers->make_contexts(parts);
}

std::vector<DeviceContext*> Session::Impl::contexts() const {
  std::vector<DeviceContext*> all = {context.get()};
  for (int tower = 1; tower < cluster.towers; ++tower) all.push_back(&towers->context(tower));
  return all;
}

RewriteOptions Session::Impl::make_rewrite() const {
  const RewriteOptions made = rewrite_of(cluster);
  if (made.widened_products && cluster.is_chief() && device_kind(cluster.device.kind).meets_roof) {
    console.print(
        "This processor multiplies bfloat16 no faster than float32: it computes in float32, from "
        "rounded operands, and will not be faster.");
  }
  return made;
}

void Session::Impl::check_watched() const {
  for (const Value& value : options.watch) {
    if (std::ranges::find(graphs, &value.graph()) != graphs.end()) continue;
    throw Error(
        ErrorCode::kInvalidArgument,
        "[session] '" + value.name() + "' is to be watched, and in no graph that is trained");
  }
}

Session::Impl::Trained Session::Impl::make_trained(const Training& training) {
  std::vector<Value> watch;
  std::vector<std::size_t> at;
  for (std::size_t i = 0; i < options.watch.size(); ++i) {
    if (&options.watch[i].graph() != &training.graph()) continue;
    watch.push_back(options.watch[i]);
    at.push_back(i);
  }
  std::vector<TrainPlans*> plans;
  for (DeviceContext* const each : contexts()) {
    plans.push_back(&each->plans().make_train_plans(training, watch, examples));
  }
  return {std::move(plans), LearningRates(job->store().variables(), &training), std::move(at)};
}

void Session::Impl::make_loop() {
  check_watched();
  if (job->restored()) restored = job->restored()->position;
  for (const Training& training : trainings) trained.push_back(make_trained(training));
  if (cluster.is_chief()) {
    for (const std::string& remark : device->remarks()) console.print(remark);
  }
  std::vector<TrainLoop::Trained> turns;
  for (Trained& each : trained) {
    turns.push_back({each.plans, each.rates});
  }
  if (run_options.summary_of.any() && cluster.is_chief()) {
    std::vector<std::string> names;
    for (const VariableSpec& variable : job->store().variables()) names.push_back(variable.name);
    details = std::make_shared<StepDetails>(run_options.summary_of, std::move(names));
    const auto shows = [](const Graph* graph) { return has_image_input(*graph); };
    if (run_options.summary_of.images && std::ranges::none_of(graphs, shows)) {
      console.print(
          "--summary-of images: no input of the model has the shape (N,C,H,W) or (N,H,W,C) with 1 "
          "or 3 channels, so no images are written");
    }
  }
  loop = std::make_unique<TrainLoop>(TrainLoop::Parts{.trainings = std::move(turns),
                                                      .store = job->store(),
                                                      .account = account,
                                                      .meter = *meter,
                                                      .normals = normals,
                                                      .seed = run_options.seed,
                                                      .task = cluster.task.index,
                                                      .first_step = job->first_step(),
                                                      .position = restored,
                                                      .timeline = timeline.get(),
                                                      .kernels = &kernel_meter,
                                                      .details = details.get(),
                                                      .towers = towers.get(),
                                                      .records = job->control().records()});
}

void Session::Impl::make_saving() {
  saving = std::make_unique<SessionSaving>(
      SessionSaving::Parts{.job = *job,
                           .contexts = contexts(),
                           .loop = loop.get(),
                           .graphs = graphs,
                           .trained_graphs = trained_graphs,
                           .clock = clock,
                           .cluster = cluster,
                           .run = run_options,
                           .notes = {{"model", options.model},
                                     {"seed", std::to_string(run_options.seed)},
                                     {"precision", std::string(name_of(cluster.train.precision))}},
                           .data = options.data_names,
                           .modules = options.modules,
                           .say = [this](const std::string& line) { console.print(line); }});
}

void Session::Impl::check_interrupt() {
  if (!job->interrupted()) return;
  std::string message = fmt::format("{} was interrupted", cluster.task.str());
  if (loop != nullptr) message += fmt::format(" at step {}", loop->last().global_step);
  if (const Interrupt* const interrupt = program_run_of(run_options).interrupt)
    interrupt->take_time();
  if (loop != nullptr) saving->save_interrupted();
  if (cluster.is_chief() && !cluster.launch.launched && loop != nullptr) {
    message += how_to_go_on(run_options);
  }
  observers.tell(&SessionObserver::leaving);
  job->leave();
  throw Error(ErrorCode::kCancelled, message);
}

// The steps of a session: in a loop, or one at a time.

bool Session::run(const std::function<void(Feed&)>& feed) {
  return impl_->guarded([&] {
    impl_->check_one_training();
    if (!started()) return false;
    if (impl_->running) impl_->end_run(*this, false);
    impl_->begin_run(*this);
    while (impl_->running) impl_->make_step(*this, 0, feed, true);
    return !impl_->ended;
  });
}

std::optional<StepResult> Session::step(const std::function<void(Feed&)>& feed) {
  impl_->guarded([&] { impl_->check_one_training(); });
  return step(0, feed);
}

std::optional<StepResult> Session::step(int training, const std::function<void(Feed&)>& feed) {
  return impl_->guarded([&]() -> std::optional<StepResult> {
    const std::size_t trainings = impl_->trainings.size();
    if (training < 0 || std::size_t(training) >= trainings) {
      throw Error(trainings == 0 ? ErrorCode::kFailedPrecondition : ErrorCode::kInvalidArgument,
                  fmt::format("[session] there is no training {}: it has {}", training, trainings));
    }
    if (impl_->ended) return std::nullopt;
    if (!impl_->running) impl_->begin_run(*this);
    if (!impl_->make_step(*this, std::size_t(training), feed, false)) return std::nullopt;
    return impl_->loop->last();
  });
}

bool Session::ended() const { return impl_->ended; }

const StepResult& Session::last_step() const { return impl_->last_step(); }

const TaskPosition& Session::position() const {
  return impl_->loop != nullptr ? impl_->loop->position() : impl_->restored;
}

void Session::set_learning_rate_factor(double factor) {
  for (Impl::Trained& each : impl_->trained) each.rates.set_factor(factor);
}

const Tensor& Session::value(Value watched) const {
  const std::vector<Value>& watch = impl_->options.watch;
  const auto at = std::ranges::find(watch, watched);
  if (at == watch.end()) {
    throw Error(ErrorCode::kNotFound, "[session] '" + watched.name() +
                                          "' is not among the values to watch (SessionOptions)");
  }
  return impl_->watched[std::size_t(at - watch.begin())];
}

void Session::finish_training() {
  if (!started()) return;
  impl_->guarded([&] {
    while (!impl_->job->wait_all_done(Deadline::after(kLookForInterruptEvery))) {
      impl_->check_interrupt();
    }
  });
}

void Session::stop_all() {
  if (started()) impl_->guarded([&] { impl_->job->control().end_training(); });
}

void Session::Impl::check_one_training() const {
  if (trainings.size() == 1) return;
  throw Error(ErrorCode::kFailedPrecondition,
              trainings.empty()
                  ? "[session] made without a training, cannot run"
                  : fmt::format("[session] has {} trainings: step(training, feed) says "
                                "whose step is made",
                                trainings.size()));
}

void Session::Impl::begin_run(Session& session) {
  if (left_run) meter->exclude(clock.now() - *left_run);
  left_run.reset();
  start_use();
  loop->begin_run();
  if (!std::exchange(ran, true)) {
    add_summaries();
    observers.tell(&SessionObserver::begins);
  }
  tell_progress(true);
  for (const auto& hook : hooks) hook->begin(session);
  running = true;
  ended = false;
}

bool Session::Impl::step_of_loop(std::size_t training, const std::function<void(Feed&)>& feed,
                                 bool look_ahead) {
  try {
    return loop->step(feed, training, look_ahead);
  } catch (const WaitInterrupted&) {
    check_interrupt();
    throw;
  }
}

bool Session::Impl::make_step(Session& session, std::size_t training,
                              const std::function<void(Feed&)>& feed, bool look_ahead) {
  running = false;  // An exception that is thrown here ends the run.
  const bool more = limit->go_on(loop->last().global_step);
  if (more) check_interrupt();
  if (!more || !step_of_loop(training, feed, look_ahead)) {
    end_run(session, !more);
    return false;
  }
  read_watched();
  const bool go_on = call_hooks(session);
  saving->tend();
  loop->end_step();
  tell_progress();
  running = go_on;
  if (!go_on) end_run(session, true);
  return true;
}

void Session::Impl::end_run(Session& session, bool for_good) {
  running = false;
  ended = for_good;
  if (for_good && loop->steps_made() == 0) say_nothing_to_do();
  for (const auto& hook : hooks) hook->end(session);
  if (for_good) saving->save_at_end();
  tell_progress(true);
  left_run = clock.now();
}

void Session::Impl::close(Session& session) noexcept {
  if (!running || unwinding() || !report.error.empty()) return;
  try {
    guarded([&] { end_run(session, false); });
  } catch (const std::exception& error) {
    failed_end(failure_text(error));
  }
}

// Summaries follow the hooks of the program, so that those see each step first.
void Session::Impl::add_summaries() {
  if (run_options.out.empty() || run_options.summary_every.never()) return;
  hooks.push_back(std::make_unique<Summaries>(run_options.out + "/summaries",
                                              run_options.summary_every, details));
}

void Session::Impl::say_nothing_to_do() {
  const std::string asked =
      run_options.steps ? fmt::format(" (--steps {})", *run_options.steps) : "";
  console.print(fmt::format("Global step {} is reached{}: there is no step to make",
                            loop->last().global_step, asked));
}

bool Session::Impl::call_hooks(Session& session) {
  bool go_on = true;
  for (const auto& hook : hooks) go_on = hook->after_step(session, loop->last()) && go_on;
  return go_on;
}

void Session::Impl::read_watched() {
  const Trained& made = trained[std::size_t(loop->last().training)];
  for (std::size_t i = 0; i < made.watched.size(); ++i) {
    Tensor& to = watched[made.watched[i]];
    const TensorView from = loop->executor().fetched(i);
    if (to.shape() != from.shape) to = Tensor(from.dtype, from.shape);
    copy_bytes(to.raw(), from.data, to.bytes());
    if (to.dtype() != DType::kFloat32 || to.elements() != 1) continue;
    float& mean = *to.data<float>().data();
    mean *= float(loop->weight(0));
    for (std::size_t tower = 1; tower < made.plans.size(); ++tower) {
      mean += float(loop->weight(tower)) * *loop->executor(tower).fetched(i).as<float>();
    }
    mean /= float(made.plans.size());
  }
}

// The work of a session beside training: evaluations, fetches, values of variables.

namespace {

[[noreturn]] void throw_unknown(std::span<const Graph* const> graphs, std::string_view name) {
  std::vector<std::string_view> known;
  for (const Graph* graph : graphs) {
    for (const auto& [named, value] : graph->names()) known.emplace_back(named);
    for (const auto& node : graph->nodes()) known.emplace_back(node->name());
  }
  throw Error(ErrorCode::kNotFound,
              fmt::format("[session] no graph of the session has a value '{}'{}", name,
                          did_you_mean(name, known)));
}

Value find_in(std::span<const Graph* const> graphs, std::string_view name) {
  for (const Graph* graph : graphs) {
    try {
      return graph->find(name);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotFound) throw;
    }
  }
  throw_unknown(graphs, name);
}

void check_known(std::span<const Graph* const> graphs, Value value) {
  if (!value) throw Error(ErrorCode::kInvalidArgument, "[session] what to evaluate is no value");
  if (std::ranges::find(graphs, &value.graph()) != graphs.end()) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("[session] '{}' is of a graph that the session does not have: share it",
                          value.name()));
}

}  // namespace

Session& Session::share(const Graph& graph) {
  impl_->guarded([&] {
    std::vector<const Graph*> with_it = impl_->graphs;
    with_it.push_back(&graph);
    const std::vector<VariableSpec> known = impl_->variables();
    for (const VariableSpec& spec : variable_specs(with_it, nullptr)) {
      if (std::ranges::find(known, spec.name, &VariableSpec::name) != known.end()) continue;
      throw Error(
          ErrorCode::kInvalidArgument,
          "[session] variable '" + spec.name + "' is in no graph that the session was made with");
    }
    impl_->graphs = std::move(with_it);
    if (started()) impl_->saving->restore_locals(impl_->graphs.size() - 1);
  });
  return *this;
}

std::span<const TensorView> Session::evaluate_in_place(const Graph& graph,
                                                       std::span<const Value> fetches,
                                                       const std::function<void(Feed&)>& feed,
                                                       Mode mode) {
  if (!started()) return impl_->unstarted.of(graph, fetches);
  return impl_->guarded([&] {
    return impl_->excluded([&] {
      if (impl_->context->snapshot().empty() || impl_->snapshot_step != impl_->own_steps()) {
        impl_->refresh_snapshot(EvaluateWith::kVariables);
      }
      return impl_->read_values(StepKind::kEvaluate, graph, fetches, feed, mode);
    });
  });
}

std::vector<Tensor> Session::evaluate(const Graph& graph, std::span<const Value> fetches,
                                      const std::function<void(Feed&)>& feed, Mode mode) {
  return copies_of(evaluate_in_place(graph, fetches, feed, mode));
}

Tensor Session::evaluate(std::string_view name, const std::function<void(Feed&)>& feed, Mode mode) {
  return evaluate(impl_->guarded([&] { return find_in(impl_->graphs, name); }), feed, mode);
}

Tensor Session::evaluate(Value value, const std::function<void(Feed&)>& feed, Mode mode) {
  impl_->guarded([&] { check_known(impl_->graphs, value); });
  return evaluate(value.graph(), {&value, 1}, feed, mode)[0];
}

void Session::begin_evaluation(EvaluateWith with) {
  if (!started()) return;
  impl_->guarded([&] { impl_->excluded([&] { impl_->refresh_snapshot(with); }); });
}

std::span<const TensorView> Session::fetch(const Graph& graph, std::span<const Value> fetches,
                                           const std::function<void(Feed&)>& feed) {
  if (!started()) return impl_->unstarted.of(graph, fetches);
  return impl_->guarded([&] {
    impl_->limit->start_when_warm();
    impl_->start_use();
    const SavableStore& store = impl_->job->store();
    const TimePoint begun = impl_->clock.now();
    const Duration transferred = store.account().transfer;
    const auto values = impl_->read_values(StepKind::kFetch, graph, fetches, feed, Mode::kInfer);
    impl_->meter->add_step(impl_->clock.now() - begun, store.account().transfer - transferred,
                           impl_->context->examples());
    return values;
  });
}

void Session::reset_locals(const Graph& graph) {
  if (!started()) return;
  for (DeviceContext* const each : impl_->contexts()) each->plans().reset_locals(graph);
}

VariableId Session::Impl::variable_of(std::string_view name) const {
  const std::vector<VariableSpec> specs = variables();
  const auto found = std::ranges::find(specs, name, &VariableSpec::name);
  if (found != specs.end()) return VariableId(found - specs.begin());
  std::vector<std::string_view> known;
  for (const VariableSpec& spec : specs) known.emplace_back(spec.name);
  throw Error(ErrorCode::kNotFound,
              fmt::format("[session] no variable '{}'{}", name, did_you_mean(name, known)));
}

SharedVariables Session::variables() { return SharedVariables(*this); }

void Session::Impl::change_variables(std::span<const VariableId> ids,
                                     const std::function<void(std::vector<VariableState>&)>& by) {
  if (cluster.distributed()) {
    throw Error(ErrorCode::kFailedPrecondition,
                "[session] the variables of a job of several tasks cannot be set: they begin with "
                "other values by Initializer::values or RunOptions::init_from");
  }
  std::vector<VariableState> states;
  if (started()) {
    states = job->store().read(ids);
  } else {
    const std::vector<VariableSpec> specs = variables();
    for (const VariableId id : ids) {
      const VariableSpec& spec = specs[std::size_t(id)];
      states.push_back({.variable = id, .value = Tensor(spec.dtype, spec.shape), .slots = {}});
    }
  }
  by(states);
  if (!started()) return;
  job->store().write(std::move(states), job->store().global_step());
  snapshot_step = -1;  // the snapshot is of no step: the next evaluation reads the new values
  evaluated = {};
  saving->values_were_set();
}

void Session::begin_evaluation(const std::string& checkpoint, EvaluateWith with) {
  if (!started()) return;
  impl_->guarded([&] {
    impl_->excluded([&] {
      impl_->take_from(checkpoint, impl_->context->snapshot(), with);
      impl_->snapshot_step = impl_->own_steps();
      impl_->evaluated = {std::make_shared<EvaluatedCheckpoint>(), impl_->own_steps()};
    });
  });
}

void Session::Impl::refresh_snapshot(EvaluateWith with) {
  evaluated = {take_newest(context->snapshot(), with), own_steps()};
  snapshot_step = own_steps();
}

std::shared_ptr<EvaluatedCheckpoint> Session::Impl::take_newest(VariableSnapshot& snapshot,
                                                                EvaluateWith with) {
  const bool still = saving->values_stand_still();
  if (still) snapshot.refresh(with);
  const SessionSaving::ToEvaluate saved = saving->save_to_evaluate();
  if (still) return saved.checkpoint;
  if (saved.path.empty()) {
    snapshot.refresh(with);
  } else {
    snapshot.load(CheckpointReader(saved.path), with);
  }
  return saved.checkpoint;
}

void Session::Impl::take_from(const std::string& checkpoint, VariableSnapshot& snapshot,
                              EvaluateWith with) {
  saving->wait_for_marks();
  const ChosenCheckpoint chosen = find_checkpoint(checkpoint, WholeCheck::kSizes);
  snapshot.load(CheckpointReader(chosen.path), with);
}

void Session::Impl::note_number(const std::string& tag, double value) {
  if (!run_options.keep_best || run_options.keep_best->name != tag) return;
  auto [checkpoint, until] = std::exchange(evaluated, {});
  if (!checkpoint || (until && *until != own_steps())) {
    checkpoint = saving->save_to_evaluate().checkpoint;
  }
  if (checkpoint) saving->note_number(*checkpoint, value);
}

std::span<const TensorView> Session::Impl::read_values(StepKind kind, const Graph& graph,
                                                       std::span<const Value> fetches,
                                                       const std::function<void(Feed&)>& feed,
                                                       Mode mode) {
  check_interrupt();
  const std::span all(graphs.data(), trained_graphs);
  const bool is_trained = std::ranges::find(all, &graph) != all.end();
  return context->read(kind, graph, fetches, mode, is_trained, feed);
}

// The state that a running session shows to its observers, and to the tasks that ask for its
// progress.

namespace {

constexpr Duration kTellEvery = std::chrono::seconds(1);

}  // namespace

class Session::Impl::Observed : public RunningSession {
 public:
  explicit Observed(Impl& impl) : impl_(impl) {}

  PlannedSession made_of() const override {
    return impl_.usual->planned(impl_.cluster, impl_.run_options);
  }
  const StepResult& last_step() const override { return impl_.last_step(); }
  void print(const std::string& line) override { impl_.console.print(line); }
  void add_to_report(const std::string& section, const std::string& key,
                     std::optional<double> value) override {
    impl_.report.set(section, key, value);
  }
  std::string report_text() const override { return impl_.report_so_far().to_json(); }
  void ask_others() override { impl_.job->control().ask_progress(); }
  std::vector<TaskWords> hear() override {
    std::vector<TaskWords> heard;
    for (ProgressBoard::Heard& each : impl_.progress.heard_after(heard_)) {
      heard.push_back({std::move(each.task), std::move(each.text)});
    }
    heard.push_back({impl_.cluster.task.str(), impl_.progress.told()});
    return heard;
  }
  Report& report() override { return impl_.report; }
  const Plan& plan(int training) const override {
    return impl_.trained.at(std::size_t(training)).plans[0]->plan();
  }
  std::span<const VariableSpec> variables() const override {
    return impl_.job->store().variables();
  }
  int threads() const override { return impl_.pool().threads(); }

 private:
  Impl& impl_;
  std::int64_t heard_ = 0;  // the number of the last answer of other tasks that was read
};

void Session::Impl::show_to_observers() {
  observers.see([this] { return std::make_unique<Observed>(*this); });
}

Report Session::Impl::report_so_far() const {
  Report now = report;
  if (meter != nullptr) now.tasks = {task_report()};
  if (saving != nullptr) saving->add_to(now);
  if (loop != nullptr && loop->steps_made() > 0) add_losses(now);
  return now;
}

void Session::Impl::tell_progress(bool anyway) {
  const bool watched = is_watched_ || progress.wanted();
  if (!watched || (!anyway && clock.now() - told_progress_ < kTellEvery)) return;
  told_progress_ = clock.now();
  TaskProgress now;
  now.at = std::chrono::duration<double>(told_progress_.time_since_epoch()).count();
  now.report = report_so_far();
  if (options.summarise) {
    for (const auto& [tag, value] : options.summarise()) summarised[tag] = value;
  }
  now.numbers.assign(summarised.begin(), summarised.end());
  if (const Log* const log = program_run_of(run_options).log) now.lines = log->remembered();
  progress.tell(now.to_json());
  if (is_watched_) observers.tell(&SessionObserver::progressed);
}

// The output of a session: lines, the report file, the timeline.

namespace {

std::string shares_text(const TaskReport& task) {
  std::string text;
  for (const auto& [name, share] : task.share) {
    text += fmt::format(" {} {:.1f}%", name, 100 * share);
  }
  return text;
}

// Returns the ops, five at most, whose kernels took most of the time of all kernels.
std::vector<KernelReport> top_kernels(const KernelMeter& meter) {
  constexpr std::size_t kMost = 5;
  if (meter.steps() == 0) return {};  // also if the first timed step failed
  const std::vector<KernelMeter::OpTime> times = meter.times();
  Duration all{0};
  for (const KernelMeter::OpTime& each : times) all += each.time;
  std::vector<KernelReport> top;
  for (std::size_t i = 0; i < std::min(kMost, times.size()) && all > Duration(0); ++i) {
    top.push_back({.op = times[i].op,
                   .per_step = double(times[i].runs) / double(meter.steps()),
                   .ms = double(times[i].time.count()) * 1e-6 / double(meter.steps()),
                   .share = double(times[i].time.count()) / double(all.count())});
  }
  return top;
}

// "3,000 global steps (1,500 here)"
std::string steps_text(const Cluster& cluster, std::int64_t global_step, const TaskReport& task) {
  std::string text = counted(global_step, "global step");
  if (cluster.distributed()) text += fmt::format(" ({} here)", grouped_digits(task.steps));
  return text;
}

}  // namespace

void Session::summarise(const std::string& tag, double value) {
  if (!started()) return;
  impl_->summarised[tag] = value;
  for (const auto& hook : impl_->hooks) hook->summarised(*this, tag, value);
  impl_->guarded([&] { impl_->excluded([&] { impl_->note_number(tag, value); }); });
}

void Session::report(const std::string& section, const std::string& key,
                     std::optional<double> value) {
  impl_->report.set(section, key, value);
}

void Session::print(const std::string& line) {
  if (started()) impl_->console.print(line);
}

void Session::Impl::fail(const std::string& message) {
  if (report.error.empty()) report.error = message;
  if (job != nullptr) job->fail();
}

void Session::Impl::start_use() {
  if (account_before_) return;
  account_before_ = job->store().account();
  links_before_ = job->store().links();
  copies_before_ = device->copy_time();
  host_ops_before_ = device->host_op_time();
  launches_before_ = device->launches();
  use_.start();
}

// Returns the bytes a second of this host's network, each way; empty where the system does not say.
// Tasks on one machine, without emulated hosts, use no network.
std::optional<double> Session::Impl::network_bytes_per_s() const {
  double gbps = program_run_of(run_options).link_gbps;
  if (gbps == 0 && !is_on_one_machine(cluster)) gbps = network_gbps();
  if (gbps == 0) return std::nullopt;
  return gbps * kPayloadOfGigabit;
}

void Session::Impl::add_links(TaskReport& task, double seconds) const {
  const std::vector<StoreLink> links = job->store().links();
  for (const StoreLink& now : links) {
    const auto before = std::ranges::find(links_before_, now.to, &StoreLink::to);
    const bool is_new = before == links_before_.end();
    const double sent = double(now.bytes_sent - (is_new ? 0 : before->bytes_sent));
    const double received = double(now.bytes_received - (is_new ? 0 : before->bytes_received));
    LinkReport& link = task.links.emplace_back();
    link.to = now.to;
    link.kind = now.kind;
    link.encrypted = now.encrypted;
    if (now.round_trip) link.round_trip_us = double(now.round_trip->count()) * 1e-3;
    if (task.steps > 0) link.step_sent = sent / double(task.steps);
    if (task.steps > 0) link.step_received = received / double(task.steps);
    if (seconds > 0) link.sent = sent / seconds;
    if (seconds > 0) link.received = received / seconds;
    if (link_traits(now.kind).on_network) link.most = network_bytes_per_s();
  }
}

TaskReport Session::Impl::task_report() const {
  return task_at_end_ ? *task_at_end_ : measured_task();
}

TaskReport Session::Impl::measured_task() const {
  TaskReport task = meter->report(cluster.task.str());
  if (!account_before_) return task;
  if (const Staleness stale = job->store().staleness(); stale.contributions > 0) {
    task.staleness_mean = stale.mean();
    task.staleness_p95 = double(stale.p95);
  }
  if (strategy_kind(cluster).ps_closes_rounds(Strategy())) {
    task.dropped = job->store().staleness().dropped;
  }
  if (cluster.train.on_nan == OnNan::kSkip) task.skipped = job->store().skipped();
  const StoreAccount now = job->store().account();
  const std::optional<MachineUse> use = use_.measure();
  task.kernels = top_kernels(kernel_meter);
  if (options.input) task.input = options.input();
  add_links(task, use ? use->seconds : 0);
  task.use = task_use(use, now.bytes_sent - account_before_->bytes_sent,
                      now.bytes_received - account_before_->bytes_received);
  const auto ms_of_step = [&](Duration time) -> std::optional<double> {
    if (task.steps == 0 || time <= Duration(0)) return {};
    return 1e-6 * double(time.count()) / double(task.steps);
  };
  task.copies_ms = ms_of_step(device->copy_time() - copies_before_);
  task.host_ops_ms = ms_of_step(device->host_op_time() - host_ops_before_);
  if (const std::int64_t launched = device->launches() - launches_before_;
      launched > 0 && task.steps > 0) {
    task.launches = double(launched) / double(task.steps);
  }
  if (task.steps > 0) {
    task.step_sent = double(now.bytes_sent - account_before_->bytes_sent) / double(task.steps);
    task.step_received =
        double(now.bytes_received - account_before_->bytes_received) / double(task.steps);
  }
  for (const auto& [name, share] : task.share) {
    // Rules that this process applies are work of its device, too.
    if (name == "compute" || name == "apply") {
      task.use.device_busy = task.use.device_busy.value_or(0) + share;
    }
  }
  return task;
}

void Session::Impl::add_results() {
  if (meter != nullptr) report.tasks = {task_report()};
  if (saving != nullptr) saving->add_to(report);
  if (loop == nullptr || loop->steps_made() == 0) return;
  add_losses(report);
}

void Session::Impl::add_losses(Report& to) const {
  to.global_step = loop->last().global_step;
  to.first_loss = loop->first_loss();
  to.last_loss = loop->last_loss();
  to.loss_begin = loop->losses().begin();
  to.loss_end = loop->losses().end();
}

void Session::Impl::write_report() {
  add_results();
  double* const counted = program_run_of(run_options).seconds_counted;
  if (counted != nullptr && limit != nullptr) *counted = limit->seconds_counted();
  try {
    write_reports(cluster, run_options, report);
  } catch (const std::exception& error) {
    failed_end(failure_text(error));
  }
}

// Reports an error at the end of a session: its destructor has nobody to throw to.
void Session::Impl::failed_end(const std::string& message) const {
  const ProgramRun& told = program_run_of(run_options);
  if (told.on_failed_end) return told.on_failed_end(message);
  print_text(stderr, fmt::format("paceline: error: {}\n", message));
}

void Session::Impl::write_timeline() {
  if (timeline == nullptr || is_left_as_it_is(run_options, report, run_options.timeline)) return;
  for (DeviceContext* const each : contexts()) each->settle();
  try {
    paceline::write_timeline(run_options.timeline, *timeline, cluster.task.str());
  } catch (const std::exception& error) {
    failed_end(failure_text(error));
  }
}

// Ends a session that has not failed. The save is for a program whose training ends with its data;
// otherwise end_run() has saved.
void Session::Impl::end_well() {
  try {
    if (loop != nullptr && loop->steps_made() > 0) saving->save_at_end();
    task_at_end_ = measured_task();  // without the memory that observers take to measure more
    report.tasks = {*task_at_end_};
    observers.tell(&SessionObserver::ended);
    print_summary();
    add_results();
    observers.tell(&SessionObserver::summed_up);
  } catch (const std::exception& error) {
    fail(error.what());
    return failed_end(error.what());
  }
  if (const std::string none = no_best_end(); !none.empty()) {
    print_text(stderr, fmt::format("paceline: {}\n", none));
  }
  if (const std::string stale = stale_end(report); !stale.empty()) console.print(stale);
  if (const std::string late = dropped_end(report); !late.empty()) console.print(late);
  if (const std::string nans = skipped_end(report); !nans.empty()) console.print(nans);
}

// Says nothing if a task that evaluates checkpoints was launched, since that task may still be at
// work.
std::string Session::Impl::no_best_end() const {
  const std::optional<KeepBest>& by = run_options.keep_best;
  if (cluster.launch.evaluator || !saving->marked_none() || summarised.contains(by->name))
    return "";
  std::vector<std::string> names;
  for (const auto& [name, value] : summarised) names.push_back(name);
  return fmt::format(
      "--keep-best {0}: no checkpoint was marked as the best, since the program gave "
      "no number {0}; it gave {1}",
      by->name, names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
}

void Session::Impl::print_summary() const {
  const TaskReport task = task_report();
  if (task.steps == 0) return;
  if (loop != nullptr) {
    if (!cluster.launch.launched)
      console.print(steps_text(cluster, loop->last().global_step, task));
    console.print(fmt::format("loss {:.6g} -> {:.6g}", printed(loop->first_loss()),
                              printed(loop->last_loss())));
  }
  if (!task.steps_per_s) {
    console.print(fmt::format("no step was timed: the first {} never are", kUntimedSteps));
    return;
  }
  const std::string examples =
      task.unit == "steps" ? "" : fmt::format(", {:.0f} {}/s", *task.examples_per_s, task.unit);
  console.print(fmt::format("{:.2f} steps/s{}:{}", *task.steps_per_s, examples, shares_text(task)));
  console.print("used " + task.use.text());
  if (const std::string bad = bad_records_in_words(task); !bad.empty()) console.print(bad);
}

}  // namespace paceline
