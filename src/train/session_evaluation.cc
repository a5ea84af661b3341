// The work of a session that is no training: evaluations, fetches, values of variables.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/nearest.h"
#include "checkpoint/checkpoint_reader.h"
#include "paceline/error.h"
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
                                                       const std::function<void(Feed&)>& feed) {
  if (!started()) return impl_->unstarted.of(graph, fetches);
  return impl_->guarded([&] {
    return impl_->excluded([&] {
      if (impl_->context->snapshot().empty() || impl_->snapshot_step != impl_->own_steps()) {
        impl_->refresh_snapshot(EvaluateWith::kVariables);
      }
      return impl_->read_values(StepKind::kEvaluate, graph, fetches, feed);
    });
  });
}

std::vector<Tensor> Session::evaluate(const Graph& graph, std::span<const Value> fetches,
                                      const std::function<void(Feed&)>& feed) {
  return copies_of(evaluate_in_place(graph, fetches, feed));
}

Tensor Session::evaluate(std::string_view name, const std::function<void(Feed&)>& feed) {
  return evaluate(impl_->guarded([&] { return find_in(impl_->graphs, name); }), feed);
}

Tensor Session::evaluate(Value value, const std::function<void(Feed&)>& feed) {
  impl_->guarded([&] { check_known(impl_->graphs, value); });
  return evaluate(value.graph(), {&value, 1}, feed)[0];
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
    const auto values = impl_->read_values(StepKind::kFetch, graph, fetches, feed);
    impl_->meter->add_step(impl_->clock.now() - begun, store.account().transfer - transferred);
    return values;
  });
}

void Session::reset_locals(const Graph& graph) {
  if (!started()) return;
  for (DeviceContext* const each : impl_->contexts()) each->plans().locals(graph).reset();
}

void Session::see_variables(const std::function<void(const std::string&, const Tensor&)>& see) {
  if (!started()) {
    for (const VariableSpec& spec : impl_->variables())
      see(spec.name, Tensor(spec.dtype, spec.shape));
    return;
  }
  impl_->guarded([&] {
    impl_->excluded([&] {
      const std::span<const VariableSpec> variables = impl_->job->store().variables();
      std::vector<VariableId> all(variables.size());
      std::iota(all.begin(), all.end(), 0);
      // The snapshot is left alone, since an evaluation may be under way on it.
      for (const VariableState& state : impl_->job->store().read(all)) {
        see(variables[std::size_t(state.variable)].name, state.value);
      }
    });
  });
}

std::vector<std::string> Session::variable_names() const {
  std::vector<std::string> names;
  for (const VariableSpec& spec : impl_->variables()) names.push_back(spec.name);
  return names;
}

VariableId Session::Impl::variable_of(std::string_view name) const {
  const std::vector<VariableSpec> specs = variables();
  const auto found = std::ranges::find(specs, name, &VariableSpec::name);
  if (found != specs.end()) return VariableId(found - specs.begin());
  throw Error(ErrorCode::kNotFound, fmt::format("[session] no variable '{}'", name));
}

Tensor Session::variable(std::string_view name) {
  return impl_->guarded([&] {
    const VariableId id = impl_->variable_of(name);
    if (started()) return impl_->job->store().read({&id, 1}).front().value;
    const VariableSpec spec = impl_->variables()[std::size_t(id)];
    return Tensor(spec.dtype, spec.shape);
  });
}

std::shared_ptr<RecordBlocks> Session::record_blocks() const {
  return started() ? impl_->job->control().records() : nullptr;
}

bool Session::move_value(std::string_view name, const TensorView& to) {
  return impl_->guarded([&] {
    const VariableId id = impl_->variable_of(name);
    const VariableSpec spec = impl_->variables()[std::size_t(id)];
    if (to.dtype != spec.dtype || !(to.shape == spec.shape)) {
      throw Error(
          ErrorCode::kInvalidArgument,
          fmt::format("[session] '{}' is {} {}, and cannot lie in {} {}", name, name_of(spec.dtype),
                      spec.shape.str(), name_of(to.dtype), to.shape.str()));
    }
    return started() &&
           impl_->job->store().move_value(id, {static_cast<std::byte*>(to.data), to.bytes()});
  });
}

void Session::begin_evaluation(const std::string& checkpoint, EvaluateWith with) {
  if (!started()) return;
  impl_->guarded([&] {
    impl_->excluded([&] {
      Impl::take_from(checkpoint, impl_->context->snapshot(), with);
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
                                                       const std::function<void(Feed&)>& feed) {
  check_interrupt();
  const std::span all(graphs.data(), trained_graphs);
  const bool is_trained = std::ranges::find(all, &graph) != all.end();
  return context->read(kind, graph, fetches, is_trained, feed);
}

}  // namespace paceline
