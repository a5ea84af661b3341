#include "train/initial_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>

#include "checkpoint/checkpoint_match.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoints.h"
#include "checkpoint/torch_names.h"
#include "paceline/error.h"
#include "params/protocol/record_set.h"
#include "run/log.h"
#include "run/report/run_folder.h"
#include "train/initial_values.h"
#include "train/resumed_slots.h"

namespace paceline {
namespace {

using Say = std::function<void(const std::string&)>;

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

// Numbers that are not whole are read in whatever precision another program saved them.
bool fits(const SavedVariable& saved, DType dtype, const Shape& shape) {
  return saved.shape == shape &&
         (saved.dtype == dtype || (is_floating(saved.dtype) && is_floating(dtype)));
}

std::string shapes_text(const std::string& name, const SavedVariable& saved, const Shape& shape,
                        DType dtype) {
  return fmt::format("{}: {} {} in the checkpoint, {} {} in the model", name, saved.shape.str(),
                     name_of(saved.dtype), shape.str(), name_of(dtype));
}

/// The values of variables that a file has as tensors of PyTorch modules.
class TorchValues {
 public:
  TorchValues(std::span<const VariableSpec> specs, const ModuleNames& modules,
              const CheckpointReader& reader)
      : reader_(reader) {
    std::vector<TensorInfo> variables;
    for (const VariableSpec& spec : specs) variables.push_back({spec.name, spec.dtype, spec.shape});
    tensors_ = torch_tensors(variables, modules);
  }
  /// The file has the value: a batch norm without gains needs no weight in it.
  bool has(const VariableSpec& spec) const {
    return std::ranges::all_of(tensors_, [&](const TorchTensor& tensor) {
      return tensor.variable != spec.name || tensor.form == TorchTensor::Form::kOnes ||
             find(tensor) != nullptr;
    });
  }
  /// Takes the value. Returns why it does not fit; empty: it does.
  std::string take(const VariableSpec& spec, Tensor& value) const {
    const Tensor made(spec.dtype, spec.shape);
    for (const TorchTensor& tensor : tensors_) {
      if (tensor.variable != spec.name) continue;
      const SavedVariable* const saved = find(tensor);
      if (saved == nullptr) continue;
      if (!fits(*saved, tensor.dtype, tensor.shape)) {
        return shapes_text(tensor.name, *saved, tensor.shape, tensor.dtype);
      }
      if (!from_torch(tensor, as_type(reader_.read(tensor.name).value, tensor.dtype), made)) {
        return fmt::format("{}: not all ones in the checkpoint, and the model has no such weight",
                           tensor.name);
      }
    }
    value = made;
    return "";
  }

 private:
  const SavedVariable* find(const TorchTensor& tensor) const {
    const auto& saved = reader_.index().variables;
    const auto found = std::ranges::find(saved, tensor.name, &SavedVariable::name);
    return found == saved.end() ? nullptr : &*found;
  }

  const CheckpointReader& reader_;
  std::vector<TorchTensor> tensors_;
};

// Takes values only, since slots begin as the rule says. Returns what does not fit, a line each.
std::vector<std::string> take_values(std::vector<VariableState>& values,
                                     std::span<const VariableSpec> specs,
                                     const std::vector<std::string>& patterns,
                                     const CheckpointReader& reader, const ModuleNames& modules) {
  std::vector<std::string> lines;
  const TorchValues torch(specs, modules, reader);
  for (std::size_t id = 0; id < specs.size(); ++id) {
    const VariableSpec& spec = specs[id];
    if (!is_wanted(spec.name, patterns)) continue;
    const auto& saved = reader.index().variables;
    const auto found = std::ranges::find(saved, spec.name, &SavedVariable::name);
    if (found == saved.end() && torch.has(spec)) {
      const std::string why = torch.take(spec, values[id].value);
      if (!why.empty()) lines.push_back(why);
    } else if (found == saved.end()) {
      lines.push_back(fmt::format("{}: only in the model", spec.name));
    } else if (!fits(*found, spec.dtype, spec.shape)) {
      lines.push_back(shapes_text(spec.name, *found, spec.shape, spec.dtype));
    } else {
      values[id].value = as_type(reader.read(spec.name).value, spec.dtype);
    }
  }
  return lines;
}

// A session without a training has the rules of no variable, and the values are all that it needs.
void take_state(InitialState& beginning, const SavableStore& store, const CheckpointReader& reader,
                const Say& say) {
  const std::span<const VariableSpec> specs = store.kept_variables();
  const bool trains = std::ranges::any_of(specs, &VariableSpec::trained);
  const auto lines = trains ? differences(reader.index().variables, variables_as_saved(store))
                            : take_values(beginning.values, specs, {}, reader, {});
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
  auto lines = take_values(beginning.values, specs, run.init_only, reader, modules);
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
