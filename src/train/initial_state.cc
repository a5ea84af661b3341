#include "train/initial_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint_index.h"
#include "checkpoint/checkpoint_match.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoints.h"
#include "paceline/error.h"
#include "params/outer/outer_store.h"
#include "params/protocol/placement.h"
#include "params/protocol/record_set.h"
#include "params/savable_store.h"
#include "params/shard/saved_variables.h"
#include "params/variable_arrays.h"
#include "run/log.h"
#include "run/program_run.h"
#include "run/report/run_folder.h"
#include "train/initial_values.h"
#include "train/saved_values.h"

namespace paceline {
namespace {

// The slots of a checkpoint, for a job whose strategy may differ from the one that saved it.

/// Returns the variables of a store as its checkpoint would list them.
std::vector<SavedVariable> variables_as_saved(const SavableStore& store);

/// Fills `beginning` from a checkpoint that has the variables of `store`: with the values, and with
/// the slots that have the same meaning in this job. The slots of a step's rule (Adam's moments)
/// belong to the variables. If workers make local steps, each worker has these slots as a part of
/// its state (`beginning.tasks`) instead, and the variables have the slots of the outer rule. Slots
/// that the checkpoint lacks begin anew, and `say` gets a line about them.
void take_values_and_slots(InitialState& beginning, const SavableStore& store,
                           const CheckpointReader& reader,
                           const std::function<void(const std::string&)>& say);

using Say = std::function<void(const std::string&)>;
using FindSlot = std::function<std::optional<Tensor>(const SlotSpec& slot)>;

std::optional<Tensor> own_slot(const SavedVariable& saved, const SavedRows& rows,
                               std::string_view name) {
  const auto found = std::ranges::find(saved.slots, name, &SavedSlot::name);
  if (found == saved.slots.end()) return {};
  return rows.slots[std::size_t(found - saved.slots.begin())];
}

std::optional<Tensor> worker_slot(const TaskState& task, const VariableSpec& spec,
                                  const SlotSpec& slot) {
  const auto found =
      std::ranges::find(task.local, inner_slot_name(spec.name, slot.name), &NamedTensor::name);
  if (found == task.local.end()) return {};
  const Tensor& tensor = found->tensor;
  const bool fits = tensor.dtype() == (slot.scalar ? DType::kInt64 : DType::kFloat32) &&
                    tensor.shape() == (slot.scalar ? Shape{1} : spec.shape);
  return fits ? std::optional(tensor) : std::nullopt;
}

Tensor first_slot(const VariableSpec& spec, const SlotSpec& slot, const Tensor& value) {
  if (slot.name == kAverageSlot) return value.clone();
  if (slot.scalar) return Tensor::of<std::int64_t>({1}, {std::int64_t(slot.initial)});
  Tensor made(DType::kFloat32, spec.shape);
  std::ranges::fill(made.data<float>(), slot.initial);
  return made;
}

// Returns an empty list when no slot is found; the store then begins all of them anew.
std::vector<Tensor> slots_found(const VariableSpec& spec, const Tensor& value,
                                const FindSlot& find) {
  bool any = false;
  std::vector<Tensor> slots;
  for (const SlotSpec& slot : slots_of(spec)) {
    const std::optional<Tensor> found = find(slot);
    any = any || found;
    slots.push_back(found ? *found : first_slot(spec, slot, value));
  }
  return any ? slots : std::vector<Tensor>();
}

// Moves the slots of the first worker that has some from its state to `to`, and returns that
// worker's number. Removes such slots from the states of all other workers.
std::optional<int> move_slots_of_a_worker(std::vector<TaskState>& tasks, TaskState& to) {
  std::optional<int> from;
  for (TaskState& task : tasks) {
    const auto slots =
        std::stable_partition(task.local.begin(), task.local.end(),
                              [](const NamedTensor& local) { return !is_inner_slot(local.name); });
    if (!from && slots != task.local.end()) {
      from = task.worker;
      std::move(slots, task.local.end(), std::back_inserter(to.local));
    }
    task.local.erase(slots, task.local.end());
  }
  return from;
}

// Copies the slots of the first worker that has some to each worker that has none, such as one that
// the checkpoint does not have.
void give_slots_to_new_workers(std::vector<TaskState>& tasks) {
  const auto is_slot = [](const NamedTensor& local) { return is_inner_slot(local.name); };
  const auto has_slots = [&](const TaskState& task) {
    return std::ranges::any_of(task.local, is_slot);
  };
  const auto from = std::ranges::find_if(tasks, has_slots);
  if (from == tasks.end()) return;
  for (TaskState& task : tasks) {
    if (!has_slots(task))
      std::ranges::copy_if(from->local, std::back_inserter(task.local), is_slot);
  }
}

void add_slots(std::vector<NamedTensor>& inner, const VariableSpec& step,
               const SavedVariable& saved, const SavedRows& rows) {
  if (!step.trained) return;
  for (const SlotSpec& slot : step.rule.slots()) {
    const auto found = own_slot(saved, rows, slot.name);
    if (found) inner.push_back({inner_slot_name(step.name, slot.name), *found});
  }
}

// Adds `slots` to the state of every worker. If a state becomes too large to be sent, adds nothing
// and returns why; else returns an empty text.
std::string give_slots(std::vector<TaskState>& tasks, const std::vector<NamedTensor>& slots) {
  std::vector<TaskState> given = tasks;
  for (TaskState& task : given) {
    task.local.insert(task.local.end(), slots.begin(), slots.end());
    std::string why = why_left_out(task);
    if (!why.empty()) return why;
  }
  tasks = std::move(given);
  return "";
}

void say_slots_became_common(std::optional<int> from, const Say& say) {
  say(fmt::format("the checkpoint is of local steps: {}, and those of the outer rule are left out",
                  from ? fmt::format("the slots of worker:{} become those of all", *from)
                       : "slots begin anew"));
}

void say_slots_are_given(const std::string& why_not, const Say& say) {
  if (!why_not.empty()) say(why_not);
  say(fmt::format(
      "the checkpoint is not of local steps: {}, and those of the outer rule begin anew",
      why_not.empty() ? "each worker goes on with its slots" : "slots begin anew"));
}

std::vector<SavedVariable> variables_as_saved(const SavableStore& store) {
  const std::span<const VariableSpec> kept = store.kept_variables(), steps = store.variables();
  std::vector<SavedVariable> saved = saved_variables(kept, place_variables(kept, 1), 1);
  if (!store.makes_local_steps()) return saved;
  for (std::size_t id = 0; id < saved.size(); ++id) {
    if (steps[id].trained) saved[id].local_rule = steps[id].rule.name();
  }
  return saved;
}

void take_values_and_slots(InitialState& beginning, const SavableStore& store,
                           const CheckpointReader& reader, const Say& say) {
  const std::vector<SavedVariable> here = variables_as_saved(store);
  const bool was_local =
      std::ranges::any_of(reader.index().variables, &SavedVariable::makes_local_steps);
  const bool is_local = store.makes_local_steps();
  TaskState worker;
  std::optional<int> from;
  if (was_local && !is_local) from = move_slots_of_a_worker(beginning.tasks, worker);
  if (was_local && is_local) give_slots_to_new_workers(beginning.tasks);
  std::vector<NamedTensor> inner;
  bool other_rule = false;
  for (std::size_t id = 0; id < here.size(); ++id) {
    const VariableSpec& spec = store.kept_variables()[id];
    const SavedVariable& saved = reader.index().variable(spec.name);
    const SavedRows rows = reader.read(spec.name);
    const bool same_rule = of_same_rule(saved, here[id]);
    other_rule = other_rule || !same_rule;
    if (!was_local && is_local) add_slots(inner, store.variables()[id], saved, rows);
    beginning.values[id].slots = slots_found(spec, rows.value, [&](const SlotSpec& slot) {
      if (same_rule || slot.name == kAverageSlot) return own_slot(saved, rows, slot.name);
      return worker_slot(worker, spec, slot);
    });
    beginning.values[id].value = rows.value;
  }
  if (was_local && is_local && other_rule) {
    say("the checkpoint has the slots of another outer rule: those of this one begin anew");
  }
  if (was_local && !is_local) say_slots_became_common(from, say);
  if (!was_local && is_local) say_slots_are_given(give_slots(beginning.tasks, inner), say);
}

using Say = std::function<void(const std::string&)>;

// Adds the unused records of the data to the chief's position. The checkpoint has them in the
// position of the worker that saved: the chief or its substitute.
void add_unused_records(const CheckpointIndex& index, TaskState& chief) {
  for (const SavedTask& task : index.tasks) {
    const auto unused = unused_of({task.position, {}});
    if (unused) return tell_unused(*unused, chief.position);
  }
}

// Returns the state from which each worker goes on. A worker that the checkpoint does not have
// begins at the chief's step.
std::vector<TaskState> states_of(const CheckpointReader& reader, int workers) {
  std::vector<TaskState> states(static_cast<std::size_t>(workers));
  for (int worker = 0; worker < workers; ++worker) {
    TaskState& state = states[std::size_t(worker)];
    state.worker = worker;
    state.step = states.front().step;
    const SavedTask* const saved = reader.index().task(TaskId{TaskId::Role::kWorker, worker}.str());
    if (saved == nullptr) continue;
    state.step = saved->step;
    state.position = {saved->position, saved->sums};
    state.local = reader.read_local(*saved);
  }
  add_unused_records(reader.index(), states.front());
  return states;
}

void delete_checkpoints(const Checkpoints& checkpoints, const Say& say) {
  checkpoints.remove_mark();
  for (const FoundCheckpoint& found : checkpoints.list(WholeCheck::kSizes)) {
    checkpoints.remove(found.step);
    say(fmt::format("deleted the checkpoint of step {} (--overwrite)", found.step));
  }
}

void check_patterns(std::span<const VariableSpec> specs, const RunOptions& run) {
  for (const std::string& pattern : run.init_only) {
    const auto matches = [&](const VariableSpec& spec) { return is_wanted(spec.name, {pattern}); };
    if (std::ranges::any_of(specs, matches)) continue;
    std::vector<std::string> names;
    for (const VariableSpec& spec : specs) names.push_back(spec.name);
    throw Error(ErrorCode::kUsage,
                fmt::format("--init-only {}: no variable of the model matches; it has {}", pattern,
                            fmt::join(names, ", ")));
  }
}

// A session without a training knows no rules of variables, and needs only the values.
void take_state(InitialState& beginning, const SavableStore& store, const CheckpointReader& reader,
                const Say& say) {
  const std::span<const VariableSpec> specs = store.kept_variables();
  const bool trains = std::ranges::any_of(specs, &VariableSpec::trained);
  const auto lines = trains ? differences(reader.index().variables, variables_as_saved(store))
                            : take_values(beginning.values, specs, reader, {});
  if (!lines.empty()) refuse_other_model(reader.path(), lines);
  if (trains) take_values_and_slots(beginning, store, reader, say);
}

// The warning goes to the log if there is one: an evaluation prints no lines, but must give it.
void check_data(const CheckpointReader& reader, const DataNames& data, const Log* log,
                const Say& say) {
  const std::string difference = first_difference(reader.index().data, data);
  if (!difference.empty()) {
    throw Error(ErrorCode::kFailedPrecondition,
                fmt::format("{} is of other data: {}", reader.path(), difference));
  }
  for (const auto& [kind, names] : data) {
    if (reader.index().data.contains(kind)) continue;
    const std::string unknown = fmt::format(
        "{} does not tell its {}: they are taken to be those of the data", reader.path(), kind);
    log != nullptr ? log->warning(unknown) : say(unknown);
  }
}

InitialState resumed(const std::string& path, const SavableStore& store, const RunOptions& run,
                     const DataNames& data, int workers, const Say& say) {
  const CheckpointReader reader(path);
  check_data(reader, data, program_run_of(run).log, say);
  InitialState beginning;
  for (std::size_t id = 0; id < store.kept_variables().size(); ++id) {
    beginning.values.push_back({.variable = VariableId(id), .value = {}, .slots = {}});
  }
  beginning.global_step = reader.index().global_step;
  beginning.tasks = states_of(reader, workers);
  take_state(beginning, store, reader, say);
  return beginning;
}

Checkpoints::Newest newest_whole(const RunOptions& run) {
  Checkpoints::Newest newest =
      Checkpoints(checkpoints_folder(run)).newest_whole(WholeCheck::kChecksums);
  if (newest.whole || newest.torn.empty()) return newest;
  throw Error(ErrorCode::kDataLoss, fmt::format("--resume: no checkpoint in {} is whole: {}",
                                                run.out, newest.torn.front().torn));
}

// Renames torn checkpoints, since later searches compare only sizes and might take a torn one for
// the newest.
void put_aside(std::span<const FoundCheckpoint> passed_over, const RunOptions& run,
               const Say& say) {
  const Checkpoints checkpoints(checkpoints_folder(run));
  for (const FoundCheckpoint& torn : passed_over) {
    say(fmt::format("{}; it is {} now", passed_over_text(torn), checkpoints.put_aside(torn.step)));
  }
}

InitialState initialised(std::span<const Graph* const> graphs, std::span<const VariableSpec> specs,
                         const RunOptions& run, const ModuleNames& modules, const Say& say) {
  InitialState beginning;
  beginning.values = initial_values(graphs, specs, run.seed);
  if (run.init_from.empty()) return beginning;
  check_patterns(specs, run);
  const ChosenCheckpoint chosen = find_checkpoint(run.init_from, WholeCheck::kChecksums);
  for (const FoundCheckpoint& torn : chosen.passed_over) say(passed_over_text(torn));
  const CheckpointReader reader(chosen.path);
  auto lines =
      take_values(beginning.values, specs, reader, {.patterns = run.init_only, .modules = modules});
  if (!lines.empty()) {
    lines.emplace_back("(--init-only PATTERN takes only some of the variables)");
    refuse_other_model(reader.path(), lines);
  }
  const auto taken = std::ranges::count_if(
      specs, [&](const VariableSpec& spec) { return is_wanted(spec.name, run.init_only); });
  say(fmt::format("{} of {} variables begin with the values in {}", taken, specs.size(),
                  reader.path()));
  return beginning;
}

}  // namespace

// Older checkpoints are deleted or renamed only once this training is sure to begin: it may begin
// with one of them.
InitialState make_beginning(std::span<const Graph* const> graphs, const SavableStore& store,
                            const RunOptions& run, const SessionOptions& options, int workers,
                            const Say& say) {
  if (!run.evaluates.empty()) {
    const std::string path = find_checkpoint(run.evaluates, WholeCheck::kChecksums).path;
    return resumed(path, store, run, options.data_names, workers, say);
  }
  if (run.resume) {
    const Checkpoints::Newest newest = newest_whole(run);
    if (newest.whole) {
      InitialState beginning =
          resumed(newest.whole->path, store, run, options.data_names, workers, say);
      put_aside(newest.torn, run, say);
      say(fmt::format("Goes on from step {}: {}", beginning.global_step, newest.whole->path));
      return beginning;
    }
  }
  InitialState beginning = initialised(graphs, store.kept_variables(), run, options.modules, say);
  if (run.overwrite) delete_checkpoints(Checkpoints(checkpoints_folder(run)), say);
  return beginning;
}

}  // namespace paceline
