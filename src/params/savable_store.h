// How a store's variables are written to a checkpoint while training goes on.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_index.h"
#include "exec/parameter_store.h"
#include "params/protocol/record_set.h"
#include "params/wire/task_state.h"

namespace paceline {

/// The files that a store has put into a checkpoint's folder, and their content.
struct SavedShards {
  std::int64_t global_step = 0;
  std::vector<WrittenFile> files;
  std::vector<SavedVariable> variables;
  std::vector<TaskState> others;        // states of the workers other than the chief
  std::vector<std::string> lines = {};  // for the user: which parts are missing
  /// Records that no counted step has read; empty if no records are shared out.
  std::optional<RecordSet> unused = {};
};

/// A save is mark(), then write_shards() on any one thread. One save at a time.
class StoreSaving {
 public:
  virtual ~StoreSaving() = default;
  /// Finds out which tasks see the folder, which must exist, and makes them prepare memory for the
  /// marked values. Call it once, before the first mark. Returns lines for the user.
  virtual std::vector<std::string> prepare_saving(const std::string& folder) = 0;
  /// Marks the present values, which will be saved. Call it between two steps, on the thread that
  /// makes the steps.
  virtual void mark() = 0;
  /// Writes the shards of the last mark into a folder. Throws as Disk does; a failure does not
  /// affect training.
  virtual SavedShards write_shards(const std::string& folder) = 0;
};

/// A store that can be saved.
class SavableStore : public ParameterStore, public StoreSaving {
 public:
  /// The variables whose values and slots are written, read and saved. They are variables(), unless
  /// the steps apply another rule than the one that the saved slots belong to.
  virtual std::span<const VariableSpec> kept_variables() const { return variables(); }
  /// True when the steps apply another rule than the one that the saved slots belong to: workers
  /// then make local steps, and keep the slots of their own rule.
  bool makes_local_steps() const { return kept_variables().data() != variables().data(); }
};

}  // namespace paceline
