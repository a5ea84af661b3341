// Reads a checkpoint, no matter how its variables were split when it was written.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint_index.h"
#include "checkpoint/checkpoints.h"
#include "checkpoint/safetensors_file.h"
#include "paceline/tensor.h"

namespace paceline {

/// Rows of a variable and of its slots. A scalar slot is an int64 of shape (1).
struct SavedRows {
  Tensor value;
  std::vector<Tensor> slots;
};

/// An open checkpoint. Values are read when they are asked for. Any number of threads may use it.
class CheckpointReader {
 public:
  /// `path` is a checkpoint's folder, its index, a single safetensors file, or the index of several
  /// safetensors files (model.safetensors.index.json). The tensors of such files are variables
  /// without slots. Throws kNotFound if nothing exists there, and kDataLoss, naming the file and
  /// the variable, if the parts do not fit together.
  explicit CheckpointReader(const std::string& path);

  const std::string& path() const { return path_; }
  const CheckpointIndex& index() const { return index_; }

  /// Reads a whole variable and its slots. Throws kNotFound naming the nearest variable.
  SavedRows read(std::string_view name) const;
  /// Reads rows [first_row, first_row + rows), from all files that hold some of them. If the pieces
  /// in these files have different values of a scalar slot, returns the largest. Throws
  /// kInvalidArgument if the variable has no such rows.
  SavedRows read_rows(const SavedVariable& variable, std::int64_t first_row,
                      std::int64_t rows) const;
  /// Reads one array of the variable (0: the value, 1 + s: slot s) into memory of exactly the right
  /// size.
  void read_rows(const SavedVariable& variable, std::size_t array, std::int64_t first_row,
                 std::int64_t rows, std::span<std::byte> into) const;
  /// Reads a task's local variables, in the order of SavedTask::local.
  std::vector<NamedTensor> read_local(const SavedTask& task) const;

  /// Returns the names that match a shell pattern ("layer*/weights"; * also matches /), in the
  /// order of the index. Throws kNotFound, with some existing names, if none matches.
  std::vector<std::string> matching(const std::string& pattern) const;

 private:
  void open_folder(const std::string& folder);
  void open_lone_file(const std::string& file);
  void open_several_files(const std::string& index);
  void add_tensor(const std::string& file, const StoredTensor& tensor);
  void check_tensor(const std::string& file, const TensorInfo& expected) const;
  const SafetensorsFile& file(const std::string& name) const { return *files_.at(name); }

  const std::string path_;
  CheckpointIndex index_;
  std::map<std::string, std::unique_ptr<SafetensorsFile>> files_;
};

struct ChosenCheckpoint {
  std::string path;  // for a CheckpointReader
  // Newer checkpoints that are not whole, about which the user must be told.
  std::vector<FoundCheckpoint> passed_over = {};
};
/// Chooses a checkpoint. If `path` is a file or a checkpoint's folder, chooses it; in a folder of
/// safetensors files, chooses their tensors; in a folder of checkpoints or the --out folder of a
/// run, chooses the newest whole checkpoint. RUN:best is the one that --keep-best has kept. Throws
/// kNotFound, saying what exists instead, and kDataLoss if the named checkpoint is not whole.
ChosenCheckpoint find_checkpoint(const std::string& path, WholeCheck check);
/// Returns "passes over a checkpoint that is not whole: WHY".
std::string passed_over_text(const FoundCheckpoint& torn);
/// Returns RUN for "RUN:best"; nothing if `path` names something else, or if a file or folder has
/// that very name.
std::optional<std::string> run_of_best(const std::string& path);
/// Returns the checkpoints in `path`, if that is a folder of checkpoints or the --out folder of a
/// run.
std::optional<Checkpoints> checkpoints_in(const std::string& path);

}  // namespace paceline
