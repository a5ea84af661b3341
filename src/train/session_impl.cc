#include "train/session_impl.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/cores.h"
#include "graph/gradient_norm.h"
#include "kernels/device_kind.h"
#include "kernels/traced_device.h"
#include "net/tls/link_security.h"
#include "paceline/error.h"
#include "params/strategy/strategies.h"
#include "run/interrupt.h"
#include "run/report/run_folder.h"
#include "run/towers.h"
#include "train/dimensions.h"
#include "train/precision.h"
#include "train/skipped_steps.h"
#include "train/worker_device.h"

namespace paceline {
namespace {

std::vector<Training> prepared(std::vector<Training> trainings, OnNan on_nan) {
  if (on_nan != OnNan::kSkip) return trainings;
  for (Training& training : trainings) skip_not_finite(training);
  return trainings;
}

// A program that wants no guard goes on with NaN.
Cluster prepared(Cluster cluster, const SessionOptions& options) {
  if (!options.nan_guard && cluster.on_nan == OnNan::kStop) cluster.on_nan = OnNan::kApply;
  return cluster;
}

}  // namespace

Session::Impl::Impl(std::vector<Training> with, std::vector<const Graph*> all, const Cluster& on,
                    const RunOptions& run_with, const SessionOptions& session_options,
                    SessionObservers with_observers)
    : trainings(prepared(std::move(with), on.on_nan)),
      graphs(std::move(all)),
      trained_graphs(trainings.empty() ? 0 : graphs.size()),
      cluster(prepared(on, session_options)),
      run_options(run_with),
      options(session_options),
      console(run_with.quiet, run_with.log),
      observers(std::move(with_observers)),
      exceptions_(std::uncaught_exceptions()) {
  for (const Value& value : options.watch) watched.emplace_back(value.dtype(), value.shape());
  if (!started()) {
    ended = true;
    return;
  }
  show_to_observers();
  options.data_names = kept_names(std::move(options.data_names));
  report.model = options.model;
  report.strategy = strategy_name(cluster);
  if (cluster.distributed()) report.tls = tls_in_words(cluster.security);
  report.accumulate = cluster.accumulate;
  report.towers = cluster.towers;
  report.precision = cluster.device.cuda_tf32 ? "tf32" : name_of(cluster.precision);
  report.flags = run_options.flags;
  report.cores = usable_cores();
  if (cluster.on_nan == OnNan::kStop) hooks.push_back(std::make_unique<NanGuard>());
  if (cluster.on_nan == OnNan::kSkip) {
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
  // An exception of the program itself: whoever catches it knows what it says.
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
  meter = std::make_unique<StepMeter>(account, options.examples_per_step, options.unit);
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
  options.examples_per_step *= cluster.towers;
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
                                   .examples = options.examples_per_step};
  context = std::make_unique<DeviceContext>(parts);
  if (towers) towers->make_contexts(parts);
}

std::vector<DeviceContext*> Session::Impl::contexts() const {
  std::vector<DeviceContext*> all = {context.get()};
  for (int tower = 1; tower < cluster.towers; ++tower) all.push_back(&towers->context(tower));
  return all;
}

RewriteOptions Session::Impl::make_rewrite() const {
  const RewriteOptions made = rewrite_to(cluster.precision);
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
  std::vector<PlanSet::TrainPlan> plans;
  for (DeviceContext* const each : contexts()) {
    plans.push_back(each->plans().make_train_plan(training, watch));
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
    TrainLoop::Trained& turn = turns.emplace_back(TrainLoop::Trained{{}, each.rates});
    for (const PlanSet::TrainPlan& plan : each.plans) turn.towers.push_back(plan.executor.get());
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
                                                      .examples = options.examples_per_step,
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
                                     {"precision", std::string(name_of(cluster.precision))}},
                           .data = options.data_names,
                           .modules = options.modules,
                           .say = [this](const std::string& line) { console.print(line); }});
}

void Session::Impl::check_interrupt() {
  if (!job->interrupted()) return;
  std::string message = fmt::format("{} was interrupted", cluster.task.str());
  if (loop != nullptr) message += fmt::format(" at step {}", loop->last().global_step);
  if (run_options.interrupt != nullptr) run_options.interrupt->take_time();
  if (loop != nullptr) saving->save_interrupted();
  if (cluster.is_chief() && !cluster.launched && loop != nullptr) {
    message += how_to_go_on(run_options);
  }
  observers.tell(&SessionObserver::leaving);
  job->leave();
  throw Error(ErrorCode::kCancelled, message);
}

}  // namespace paceline
