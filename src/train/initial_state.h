// The state that training begins with: initial values, or the content of a checkpoint.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_index.h"
#include "exec/parameter_store.h"
#include "paceline/graph.h"
#include "paceline/run_options.h"
#include "paceline/session.h"
#include "params/savable_store.h"
#include "params/wire/task_state.h"

namespace paceline {

struct InitialState {
  std::vector<VariableState> values;  // of every variable
  std::int64_t global_step = 0;
  std::vector<TaskState> tasks;  // by worker, if training resumes; else empty
};

/// Makes the state that RunOptions ask for, of the variables that `store` keeps. --resume goes on
/// from the newest whole checkpoint, if there is one; RunOptions::evaluates takes the state of the
/// checkpoint that it names; --overwrite deletes the checkpoints that are there; --init-from gives
/// values in place of initial ones. Throws kFailedPrecondition that lists the differences when a
/// checkpoint that is resumed or evaluated is of other data (SessionOptions::data_names) or of
/// another model; any strategy may have saved it. `say` gets a line that names the origin of the
/// values.
InitialState make_beginning(std::span<const Graph* const> graphs, const SavableStore& store,
                            const RunOptions& run, const SessionOptions& options, int workers,
                            const std::function<void(const std::string&)>& say);

}  // namespace paceline
