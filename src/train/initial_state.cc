#include "train/initial_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>

#include "checkpoint/checkpoint_match.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoints.h"
#include "cluster/report/run_folder.h"
#include "paceline/error.h"
#include "params/protocol/record_set.h"
#include "params/shard/saved_variables.h"
#include "train/initial_values.h"

namespace paceline {
namespace {

using Say = std::function<void(const std::string&)>;

std::vector<SavedVariable> as_saved(std::span<const VariableSpec> specs) {
  return saved_variables(specs, place_variables(specs, 1), 1);
}

[[noreturn]] void refuse_other_model(const std::string& path, std::span<const std::string> lines) {
  throw Error(
      ErrorCode::kFailedPrecondition,
      fmt::format("{} is a checkpoint of another model:\n  {}", path, fmt::join(lines, "\n  ")));
}

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
    const SavedTask* const saved = reader.index().task(TaskId{TaskId::Job::kWorker, worker}.str());
    if (saved == nullptr) continue;
    state.step = saved->step;
    state.position = {saved->position, saved->sums};
    state.local = reader.read_local(*saved);
  }
  add_unused_records(reader.index(), states.front());
  return states;
}

InitialState resumed(const std::string& path, std::span<const VariableSpec> specs, int workers) {
  const CheckpointReader reader(path);
  const auto lines = differences(reader.index().variables, as_saved(specs));
  if (!lines.empty()) refuse_other_model(path, lines);
  InitialState beginning;
  beginning.global_step = reader.index().global_step;
  beginning.tasks = states_of(reader, workers);
  for (std::size_t id = 0; id < specs.size(); ++id) {
    SavedRows rows = reader.read(specs[id].name);
    beginning.values.push_back({VariableId(id), std::move(rows.value), std::move(rows.slots)});
  }
  return beginning;
}

void delete_checkpoints(const Checkpoints& checkpoints, const Say& say) {
  for (const FoundCheckpoint& found : checkpoints.list(WholeCheck::kSizes)) {
    checkpoints.remove(found.step);
    say(fmt::format("deleted the checkpoint of step {} (--overwrite)", found.step));
  }
}

bool is_wanted(const std::string& name, const std::vector<std::string>& patterns) {
  return patterns.empty() || std::ranges::any_of(patterns, [&](const std::string& pattern) {
           return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
         });
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

// Takes values only, since slots begin as the rule says. Returns the number of variables.
std::size_t take_values(InitialState& beginning, std::span<const VariableSpec> specs,
                        const RunOptions& run, const CheckpointReader& reader) {
  std::vector<std::string> lines;
  std::size_t taken = 0;
  for (std::size_t id = 0; id < specs.size(); ++id) {
    const VariableSpec& spec = specs[id];
    if (!is_wanted(spec.name, run.init_only)) continue;
    const auto& saved = reader.index().variables;
    const auto found = std::ranges::find(saved, spec.name, &SavedVariable::name);
    if (found == saved.end()) {
      lines.push_back(fmt::format("{}: only in the model", spec.name));
    } else if (found->dtype != spec.dtype || found->shape != spec.shape) {
      lines.push_back(fmt::format("{}: {} {} in the checkpoint, {} {} in the model", spec.name,
                                  found->shape.str(), name_of(found->dtype), spec.shape.str(),
                                  name_of(spec.dtype)));
    } else {
      beginning.values[id].value = reader.read(spec.name).value;
      ++taken;
    }
  }
  if (lines.empty()) return taken;
  lines.emplace_back("(--init-only PATTERN takes only some of the variables)");
  refuse_other_model(reader.path(), lines);
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
    say(fmt::format("passes over a checkpoint that is not whole: {}; it is {} now", torn.torn,
                    checkpoints.put_aside(torn.step)));
  }
}

InitialState initialised(std::span<const Graph* const> graphs, std::span<const VariableSpec> specs,
                         const RunOptions& run, const Say& say) {
  InitialState beginning;
  beginning.values = initial_values(graphs, specs, run.seed);
  if (run.init_from.empty()) return beginning;
  check_patterns(specs, run);
  const CheckpointReader reader(find_checkpoint(run.init_from));
  const std::size_t taken = take_values(beginning, specs, run, reader);
  say(fmt::format("{} of {} variables begin with the values in {}", taken, specs.size(),
                  reader.path()));
  return beginning;
}

}  // namespace

// Older checkpoints are deleted or renamed only once this training is sure to begin: it may begin
// with one of them.
InitialState make_beginning(std::span<const Graph* const> graphs,
                            std::span<const VariableSpec> specs, const RunOptions& run, int workers,
                            const Say& say) {
  if (run.resume) {
    const Checkpoints::Newest newest = newest_whole(run);
    if (newest.whole) {
      InitialState beginning = resumed(newest.whole->path, specs, workers);
      put_aside(newest.torn, run, say);
      say(fmt::format("Goes on from step {}: {}", beginning.global_step, newest.whole->path));
      return beginning;
    }
  }
  InitialState beginning = initialised(graphs, specs, run, say);
  if (run.overwrite) delete_checkpoints(Checkpoints(checkpoints_folder(run)), say);
  return beginning;
}

}  // namespace paceline
