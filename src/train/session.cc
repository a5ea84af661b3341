#include "paceline/session.h"

#include <algorithm>
#include <utility>

#include "paceline/error.h"
#include "train/session_impl.h"

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
  SessionObservers observers({trainings, graphs, cluster, run, options});
  impl_ = std::make_unique<Impl>(std::move(trainings), graphs, cluster, run, options,
                                 std::move(observers));
}

Session::Session(const Graph& graph, const Cluster& cluster, const RunOptions& run,
                 const SessionOptions& options) {
  const std::vector<const Graph*> graphs = {&graph};
  SessionObservers observers({{}, graphs, cluster, run, options});
  impl_ = std::make_unique<Impl>(std::vector<Training>(), graphs, cluster, run, options,
                                 std::move(observers));
}

Session::~Session() { impl_->close(*this); }

void Session::close() {
  impl_->close(*this);
  impl_->finish();
  impl_->leave();
}

Session& Session::add(std::unique_ptr<Hook> hook) {
  impl_->hooks.push_back(std::move(hook));
  return *this;
}

const Graph& Session::graph() const { return *impl_->graphs[0]; }
const SessionOptions& Session::options() const { return impl_->options; }
const RunOptions& Session::run_options() const { return impl_->run_options; }
bool Session::started() const { return impl_->started(); }
bool Session::is_chief() const { return impl_->cluster.is_chief(); }
int Session::worker_index() const { return impl_->cluster.task.index; }
int Session::workers() const { return impl_->cluster.workers(); }

Session& Session::on_save(std::function<void(TaskPosition&)> tell) {
  if (started()) impl_->saving->on_save(std::move(tell));
  return *this;
}

const TaskPosition& Session::restored() const { return impl_->restored; }

bool Session::begin_save() {
  return started() && impl_->guarded([&] { return impl_->saving->begin(); });
}

void Session::save() {
  if (started()) impl_->guarded([&] { impl_->saving->save(); });
}

}  // namespace paceline
