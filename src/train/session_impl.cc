#include "train/session_impl.h"

#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/copy_bytes.h"
#include "base/cores.h"
#include "kernels/traced_device.h"
#include "paceline/error.h"
#include "params/strategies.h"
#include "train/precision.h"
#include "train/worker_device.h"

namespace paceline {
namespace {

// So many examples a step has, unless the program says how many.
std::int64_t first_dimension_of_inputs(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (node->op().name != "input") continue;
    const Shape& shape = node->outputs()[0].shape;
    return shape.rank() > 0 ? shape[0] : 1;
  }
  return 1;
}

}  // namespace

Tensor copy_of(const TensorView& view) {
  Tensor tensor(view.dtype, view.shape);
  copy_bytes(tensor.raw(), view.data, view.bytes());
  return tensor;
}

Session::Impl::Impl(std::vector<Training> with, std::vector<const Graph*> all, const Cluster& on,
                    const RunOptions& run_with, const SessionOptions& session_options)
    : trainings(std::move(with)),
      graphs(std::move(all)),
      trained_graphs(trainings.empty() ? 0 : graphs.size()),
      cluster(on),
      run_options(run_with),
      options(session_options),
      save_due_(run_with.save_every, clock.now()),
      terminal_(isatty(STDOUT_FILENO) == 1),
      exceptions_(std::uncaught_exceptions()) {
  report.model = options.model;
  report.strategy = strategy_name(cluster);
  report.accumulate = cluster.accumulate;
  report.precision = name_of(cluster.precision);
  report.cores = cores_of_machine();
  try {
    guarded([&] { make_parts(); });
  } catch (...) {
    write_report();
    throw;
  }
}

Session::Impl::~Impl() {
  // An exception of the program itself: whoever catches it knows what it says.
  if (unwinding() && job != nullptr) job->fail();
  if (!unwinding() && report.error.empty()) end_well();
  write_report();
  write_timeline();
}

std::vector<VariableSpec> Session::Impl::specs() const { return variable_specs(graphs, trainings); }

void Session::Impl::make_parts() {
  device = make_device(worker_device(cluster), clock);
  if (!run_options.timeline.empty()) {
    timeline = std::make_unique<Timeline>(run_options.timeline_first, run_options.timeline_end);
    device = make_traced_device(std::move(device), *timeline);
  }
  const std::vector<VariableSpec> variables = specs();
  job = std::make_unique<Job>(Job::Options{.cluster = cluster,
                                           .run = run_options,
                                           .pool = &device->threads(),
                                           .account = &account,
                                           .timeline = timeline.get()},
                              variables);
  job->initialise([&] {
    return make_beginning(graphs, variables, run_options, cluster.workers(),
                          [this](const std::string& line) { print(line, false); });
  });
  snapshot = std::make_unique<VariableSnapshot>(job->store());
  plans = std::make_unique<PlanSet>(PlanSet::Parts{job->store(), *device, *snapshot, account,
                                                   evaluation_account, rewrite_options(),
                                                   run_options.fused_update, timeline.get()});
  if (options.examples_per_step == 0) {
    options.examples_per_step = first_dimension_of_inputs(*graphs[0]);
  }
  meter = std::make_unique<StepMeter>(account, options.examples_per_step, options.unit);
  limit = std::make_unique<TrainLimit>(run_options, *meter, job->control());
  if (trainings.empty()) return;
  make_loop();
  restore();
  make_saver();
}

RewriteOptions Session::Impl::rewrite_options() {
  const RewriteOptions rewrite = rewrite_to(cluster.precision);
  if (rewrite.widened_products && cluster.is_chief() && cluster.device.kind == "cpu") {
    print(
        "This processor multiplies bfloat16 no faster than float32: it computes in float32, from "
        "rounded operands, and will not be faster.",
        false);
  }
  return rewrite;
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
  std::vector<std::size_t> watched;
  for (std::size_t i = 0; i < options.watch.size(); ++i) {
    if (&options.watch[i].graph() != &training.graph()) continue;
    watch.push_back(options.watch[i]);
    watched.push_back(i);
  }
  return {plans->make_train_plan(training, watch),
          LearningRates(job->store().variables(), &training), std::move(watched)};
}

void Session::Impl::set_learning_rate_factor(double factor) {
  for (Trained& each : trained) each.rates.set_factor(factor);
}

void Session::Impl::make_loop() {
  check_watched();
  for (const Value& value : options.watch) watched_.emplace_back(value.dtype(), value.shape());
  for (const Training& training : trainings) trained.push_back(make_trained(training));
  std::vector<TrainLoop::Trained> turns;
  for (Trained& each : trained) turns.push_back({*each.plan.executor, each.rates});
  loop = std::make_unique<TrainLoop>(TrainLoop::Parts{.trainings = std::move(turns),
                                                      .store = job->store(),
                                                      .account = account,
                                                      .meter = *meter,
                                                      .normals = normals_,
                                                      .seed = run_options.seed,
                                                      .task = cluster.task.index,
                                                      .examples = options.examples_per_step,
                                                      .first_step = job->first_step(),
                                                      .timeline = timeline.get()});
}

const Tensor& Session::Impl::watched(Value value) const {
  const auto at = std::ranges::find(options.watch, value);
  if (at == options.watch.end()) {
    throw Error(ErrorCode::kNotFound, "[session] '" + value.name() +
                                          "' is not among the values to watch (SessionOptions)");
  }
  return watched_[std::size_t(at - options.watch.begin())];
}

void Session::Impl::share(const Graph& graph) {
  std::vector<const Graph*> with_it = graphs;
  with_it.push_back(&graph);
  for (const VariableSpec& spec : variable_specs(with_it, nullptr)) {
    if (std::ranges::find(job->store().variables(), spec.name, &VariableSpec::name) ==
        job->store().variables().end()) {
      throw Error(
          ErrorCode::kInvalidArgument,
          "[session] variable '" + spec.name + "' is in no graph that the session was made with");
    }
  }
  graphs = std::move(with_it);
  restore_locals(graphs.size() - 1);
}

void Session::Impl::refresh_snapshot(EvaluateWith with) {
  snapshot->refresh(with);
  snapshot_step_ = own_steps();
}

void Session::Impl::begin_evaluation(EvaluateWith with) {
  const TimePoint begun = clock.now();
  refresh_snapshot(with);
  if (!left_run_) meter->exclude(clock.now() - begun);
}

void Session::Impl::see_variables(
    const std::function<void(const std::string&, const Tensor&)>& see) {
  const TimePoint begun = clock.now();
  const std::span<const VariableSpec> variables = job->store().variables();
  std::vector<VariableId> all(variables.size());
  std::iota(all.begin(), all.end(), 0);
  // Not the snapshot: an evaluation may be under way on it.
  for (const VariableState& state : job->store().read(all)) {
    see(variables[std::size_t(state.variable)].name, state.value);
  }
  if (!left_run_) meter->exclude(clock.now() - begun);
}

std::span<const TensorView> Session::Impl::evaluate(const Graph& graph,
                                                    std::span<const Value> fetches,
                                                    const std::function<void(Feed&)>& feed) {
  const TimePoint begun = clock.now();
  if (snapshot->empty() || snapshot_step_ != own_steps()) {
    refresh_snapshot(EvaluateWith::kVariables);
  }
  const auto values = run_read_plan(StepKind::kEvaluate, graph, fetches, feed);
  if (!left_run_) meter->exclude(clock.now() - begun);
  return values;
}

std::span<const TensorView> Session::Impl::fetch(const Graph& graph, std::span<const Value> fetches,
                                                 const std::function<void(Feed&)>& feed) {
  limit->start_when_warm();
  start_use();
  const TimePoint begun = clock.now();
  const Duration transferred = job->store().account().transfer;
  const auto values = run_read_plan(StepKind::kFetch, graph, fetches, feed);
  meter->add_step(clock.now() - begun, job->store().account().transfer - transferred);
  return values;
}

std::span<const TensorView> Session::Impl::run_read_plan(StepKind kind, const Graph& graph,
                                                         std::span<const Value> fetches,
                                                         const std::function<void(Feed&)>& feed) {
  check_interrupt();
  const std::span all(graphs.data(), trained_graphs);
  const bool keep_locals = std::ranges::find(all, &graph) != all.end();
  ReadPlan& plan = plans->read_plan(kind, graph, fetches, keep_locals);
  const StepIdentity identity{run_options.seed, cluster.task.index, read_steps_++};
  StepFeed step_feed(plan.executor(), normals_, identity);
  StepAccount& time = kind == StepKind::kFetch ? account : evaluation_account;
  if (feed) {
    AccountScope input(time, Activity::kInput);
    feed(step_feed);
  }
  StepRequest request;
  request.kind = kind;
  request.examples = options.examples_per_step;
  request.identity = identity;
  return plan.run(request);
}

}  // namespace paceline
