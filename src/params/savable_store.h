// The writing of a store's variables to a checkpoint while training goes on.
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

/// The files that a store put into a checkpoint's folder, and their content.
struct SavedShards {
  std::int64_t global_step = 0;
  std::vector<WrittenFile> files;
  std::vector<SavedVariable> variables;
  std::vector<TaskState> others;        // of the workers that are not the chief
  std::vector<std::string> lines = {};  // for the user: the parts that are missing
  /// Records that no step that counts has read; nothing where none are shared out.
  std::optional<RecordSet> unused = {};
};

/// A save is mark(), then write_shards() on any one thread. One at a time.
class StoreSaving {
 public:
  virtual ~StoreSaving() = default;
  /// Finds out who sees the folder, which must be there, and has memory made for the marked values.
  /// To be called once, before the first mark. Returns lines for the user.
  virtual std::vector<std::string> prepare_saving(const std::string& folder) = 0;
  /// Marks the present values as those to be saved. To be called on the thread that makes steps,
  /// between two of them.
  virtual void mark() = 0;
  /// Writes the shards of the last mark into a folder. Throws as Disk does; training is not
  /// touched.
  virtual SavedShards write_shards(const std::string& folder) = 0;
};

/// A store that can be saved.
class SavableStore : public ParameterStore, public StoreSaving {
 public:
  /// The variables whose slots are written, read and saved. They are variables(), unless the rule
  /// that is applied to the saved values is another one than that of a step.
  virtual std::span<const VariableSpec> kept_variables() const { return variables(); }
  /// True when it is another one: workers make local steps, and keep the slots of their rule.
  bool makes_local_steps() const { return kept_variables().data() != variables().data(); }
};

}  // namespace paceline
