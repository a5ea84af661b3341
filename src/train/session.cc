#include "paceline/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/nearest.h"
#include "cluster/task_program.h"
#include "paceline/error.h"
#include "train/dry_run.h"
#include "train/session_impl.h"

namespace paceline {
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

std::pair<const Graph*, Value> find_in(std::span<const Graph* const> graphs,
                                       std::string_view name) {
  for (const Graph* graph : graphs) {
    try {
      return {graph, graph->find(name)};
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

// Says what the job would be, and ends the program through run_program.
[[noreturn]] void dry_run(std::span<const DryStep> steps, const Cluster& cluster,
                          const RunOptions& run, const SessionOptions& options) {
  fmt::print("{}", dry_run_text(options.model, steps, cluster, run));
  throw DryRunShown();
}

// Each once.
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

Session& Session::share(const Graph& graph) {
  impl_->guarded([&] { impl_->share(graph); });
  return *this;
}

bool Session::run(const std::function<void(Feed&)>& feed) {
  return impl_->guarded([&] {
    impl_->check_one_training();
    return impl_->run(*this, feed);
  });
}

std::optional<StepResult> Session::step(const std::function<void(Feed&)>& feed) {
  return impl_->guarded([&] {
    impl_->check_one_training();
    return impl_->step(*this, 0, feed);
  });
}

std::optional<StepResult> Session::step(int training, const std::function<void(Feed&)>& feed) {
  return impl_->guarded([&] { return impl_->step(*this, training, feed); });
}

bool Session::ended() const { return impl_->ended(); }

std::span<const TensorView> Session::evaluate_in_place(const Graph& graph,
                                                       std::span<const Value> fetches,
                                                       const std::function<void(Feed&)>& feed) {
  return impl_->guarded([&] { return impl_->evaluate(graph, fetches, feed); });
}

std::vector<Tensor> Session::evaluate(const Graph& graph, std::span<const Value> fetches,
                                      const std::function<void(Feed&)>& feed) {
  std::vector<Tensor> values;
  for (const TensorView& view : evaluate_in_place(graph, fetches, feed)) {
    values.push_back(copy_of(view));
  }
  return values;
}

Tensor Session::evaluate(std::string_view name, const std::function<void(Feed&)>& feed) {
  const auto [graph, value] = impl_->guarded([&] { return find_in(impl_->graphs, name); });
  return evaluate(*graph, {&value, 1}, feed)[0];
}

Tensor Session::evaluate(Value value, const std::function<void(Feed&)>& feed) {
  impl_->guarded([&] { check_known(impl_->graphs, value); });
  return evaluate(value.graph(), {&value, 1}, feed)[0];
}

void Session::begin_evaluation(EvaluateWith with) {
  impl_->guarded([&] { impl_->begin_evaluation(with); });
}

std::span<const TensorView> Session::fetch(const Graph& graph, std::span<const Value> fetches,
                                           const std::function<void(Feed&)>& feed) {
  return impl_->guarded([&] { return impl_->fetch(graph, fetches, feed); });
}

const Tensor& Session::value(Value watched) const { return impl_->watched(watched); }

void Session::reset_locals(const Graph& graph) { impl_->plans->locals(graph).reset(); }

void Session::set_learning_rate_factor(double factor) { impl_->set_learning_rate_factor(factor); }

const StepResult& Session::last_step() const {
  static constexpr StepResult kNone{};
  return impl_->loop != nullptr ? impl_->loop->last() : kNone;
}

const Graph& Session::graph() const { return *impl_->graphs[0]; }

const SessionOptions& Session::options() const { return impl_->options; }

std::vector<std::pair<std::string, double>> Session::seconds_spent() {
  return impl_->meter->seconds_spent();
}

void Session::see_variables(const std::function<void(const std::string&, const Tensor&)>& see) {
  impl_->guarded([&] { impl_->see_variables(see); });
}

void Session::summarise(const std::string& tag, double value) {
  for (const auto& hook : impl_->hooks) hook->summarised(*this, tag, value);
}

const RunOptions& Session::run_options() const { return impl_->run_options; }
bool Session::is_chief() const { return impl_->cluster.is_chief(); }
int Session::worker_index() const { return impl_->cluster.task.index; }
int Session::workers() const { return impl_->cluster.workers(); }

void Session::finish_training() {
  impl_->guarded([&] { impl_->finish_training(); });
}

Session& Session::on_save(std::function<void(TaskPosition&)> tell) {
  impl_->tell_position = std::move(tell);
  return *this;
}

const TaskPosition& Session::restored() const { return impl_->restored_position; }
bool Session::begin_save() {
  return impl_->guarded([&] { return impl_->begin_save(); });
}
void Session::save() {
  impl_->guarded([&] { impl_->save(); });
}

std::vector<std::string> Session::variable_names() const {
  std::vector<std::string> names;
  for (const VariableSpec& spec : impl_->job->store().variables()) names.push_back(spec.name);
  return names;
}

Tensor Session::variable(std::string_view name) {
  return impl_->guarded([&] { return impl_->read_variable(name); });
}

void Session::report(const std::string& section, const std::string& key,
                     std::optional<double> value) {
  impl_->report.set(section, key, value);
}

void Session::print(const std::string& line) { impl_->print(line, false); }
void Session::print_progress(const std::string& line) { impl_->print(line, true); }

}  // namespace paceline
