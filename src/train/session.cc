#include "paceline/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "paceline/error.h"
#include "train/dry_run.h"
#include "train/prediction.h"
#include "train/session_impl.h"

namespace paceline {
namespace {

DryStep dry_step(const Graph& graph, const Training* training, const SessionOptions& options) {
  DryStep step;
  step.request.graph = &graph;
  step.request.training = training;
  for (const Value& value : options.watch) {
    if (&value.graph() == &graph) step.request.fetches.push_back(value);
  }
  return step;
}

std::vector<DryStep> dry_steps(std::span<const Training> trainings, const SessionOptions& options) {
  std::vector<DryStep> steps;
  for (const Training& training : trainings) {
    steps.push_back(dry_step(training.graph(), &training, options));
    if (trainings.size() > 1) steps.back().section = fmt::format("training {}", steps.size() - 1);
  }
  return steps;
}

// Prints the plan of the job, and ends the program through run_program.
[[noreturn]] void dry_run(std::span<const DryStep> steps, const Cluster& cluster,
                          const RunOptions& run, const SessionOptions& options) {
  fmt::print("{}", dry_run_text(options.model, steps, cluster, run));
  throw DryRunShown();
}

// Prints the ways to distribute the job, or lists them for run_program, and ends the program
// through it.
[[noreturn]] void predict(const std::vector<DryStep>& steps, const Cluster& cluster,
                          const RunOptions& run, const SessionOptions& options) {
  const PredictedStep step{.model = options.model,
                           .request = steps.front().request,
                           .examples = double(options.examples_per_step)};
  if (run.prediction.compared == nullptr) {
    predict_ways(step, cluster, run.prediction);
  } else if (steps.size() == 1) {
    *run.prediction.compared = compare_ways(step, cluster, run.prediction);
  }
  throw DryRunShown();
}

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
  if (run.dry_run) dry_run(dry_steps(trainings, options), cluster, run, options);
  if (run.prediction.asked || run.prediction.compared != nullptr)
    predict(dry_steps(trainings, options), cluster, run, options);
  std::vector<const Graph*> graphs = graphs_of(trainings);
  impl_ = std::make_unique<Impl>(std::move(trainings), std::move(graphs), cluster, run, options);
}

Session::Session(const Graph& graph, const Cluster& cluster, const RunOptions& run,
                 const SessionOptions& options) {
  if (run.dry_run) {
    const DryStep step = dry_step(graph, nullptr, options);
    dry_run({&step, 1}, cluster, run, options);
  }
  impl_ =
      std::make_unique<Impl>(std::vector<Training>(), std::vector{&graph}, cluster, run, options);
}

Session::~Session() { impl_->close(*this); }

Session& Session::add(std::unique_ptr<Hook> hook) {
  impl_->hooks.push_back(std::move(hook));
  return *this;
}

const Graph& Session::graph() const { return *impl_->graphs[0]; }
const SessionOptions& Session::options() const { return impl_->options; }
const RunOptions& Session::run_options() const { return impl_->run_options; }
bool Session::is_chief() const { return impl_->cluster.is_chief(); }
int Session::worker_index() const { return impl_->cluster.task.index; }
int Session::workers() const { return impl_->cluster.workers(); }

Session& Session::on_save(std::function<void(TaskPosition&)> tell) {
  impl_->saving->on_save(std::move(tell));
  return *this;
}

const TaskPosition& Session::restored() const { return impl_->restored; }

bool Session::begin_save() {
  return impl_->guarded([&] { return impl_->saving->begin(); });
}

void Session::save() {
  impl_->guarded([&] { impl_->saving->save(); });
}

}  // namespace paceline
