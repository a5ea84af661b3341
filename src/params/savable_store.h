// How a store's variables come into a checkpoint while training goes on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_index.h"
#include "exec/parameter_store.h"
#include "params/wire/task_state.h"

namespace paceline {

/// What a store put into a checkpoint's folder, and what it knows beside it.
struct SavedShards {
  std::int64_t global_step = 0;
  std::vector<WrittenFile> files;
  std::vector<SavedVariable> variables;
  std::vector<TaskState> others;        // of the workers that are not the chief
  std::vector<std::string> lines = {};  // for the user: what is not in it that should be
};

/// A save is mark(), then write_shards() on any one thread. One at a time.
class StoreSaving {
 public:
  virtual ~StoreSaving() = default;
  /// Once, before the first mark: finds out who sees the folder, which is there, and has memory
  /// made for the moments. Returns lines for the user.
  virtual std::vector<std::string> prepare_saving(const std::string& folder) = 0;
  /// On the thread that makes steps, between two of them: what is to be saved is what is there now.
  virtual void mark() = 0;
  /// Writes the shards of the last mark into a folder. Throws as Disk does; training is not
  /// touched.
  virtual SavedShards write_shards(const std::string& folder) = 0;
};

/// A store that can be saved.
class SavableStore : public ParameterStore, public StoreSaving {};

}  // namespace paceline
