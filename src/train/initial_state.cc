#include "train/initial_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "checkpoint/checkpoint_match.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoints.h"
#include "paceline/error.h"
#include "params/protocol/record_set.h"
#include "run/log.h"
#include "run/report/run_folder.h"
#include "train/initial_values.h"
#include "train/resumed_slots.h"
#include "train/saved_values.h"

namespace paceline {
namespace {

using Say = std::function<void(const std::string&)>;

// The worker that saved has told them, the chief or one that has taken over from it.
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

// A session without a training has the rules of no variable, and the values are all that it needs.
void take_state(InitialState& beginning, const SavableStore& store, const CheckpointReader& reader,
                const Say& say) {
  const std::span<const VariableSpec> specs = store.kept_variables();
  const bool trains = std::ranges::any_of(specs, &VariableSpec::trained);
  const auto lines = trains ? differences(reader.index().variables, variables_as_saved(store))
                            : take_values(beginning.values, specs, reader, {});
  if (!lines.empty()) refuse_other_model(reader.path(), lines);
  if (trains) take_values_and_slots(beginning, store, reader, say);
}

// An evaluation is quiet, and must say it, too.
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
  check_data(reader, data, run.log, say);
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

// Renames torn checkpoints, since later looks compare sizes only and might take one for the newest.
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
