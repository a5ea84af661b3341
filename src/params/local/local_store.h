// The store of one process, whose variables are this task's own tensors. ready() applies the rule
// at once; with clipping, end_step() applies it.
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

/// Makes a local store. `pool` (null: one thread), `account` and `timeline` may be null, and must
/// outlive the store. The store must outlive the result of bind(). One thread makes all calls, but
/// another thread may call write_shards. Applying a rule counts as apply in the account, and is an
/// event of the timeline.
///
/// Throws kInvalidArgument for a trained variable that is not float32, for rows with the rule ema,
/// and for a name that occurs twice.
std::unique_ptr<SavableStore> make_local_store(std::vector<VariableSpec> variables,
                                               ThreadPool* pool, StepAccount* account,
                                               Timeline* timeline = nullptr,
                                               OnNan on_nan = OnNan::kStop,
                                               const std::string& task = "worker:0");

}  // namespace paceline
