// One process: the variables are this task's own tensors. ready() applies the rule at once, or,
// with clipping, end_step() does.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "paceline/cluster.h"
#include "params/savable_store.h"
#include "trace/step_account.h"
#include "trace/timeline.h"

namespace paceline {

/// `pool` (may be null: one thread) and `account` (may be null) must outlive the store; the store
/// must outlive the result of bind(). One thread makes all calls, but another may call
/// write_shards. Applying a rule counts as apply, and is an event of `timeline` (may be null; must
/// outlive the store). Throws kInvalidArgument for a trained variable that is not float32, for rows
/// with the rule ema, and for a name that occurs twice.
std::unique_ptr<SavableStore> make_local_store(std::vector<VariableSpec> variables,
                                               ThreadPool* pool, StepAccount* account,
                                               Timeline* timeline = nullptr,
                                               OnNan on_nan = OnNan::kStop,
                                               const std::string& task = "worker:0");

}  // namespace paceline
