// Reads a checkpoint, however its variables were split when it was written.
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

/// Rows of a variable and of its slots; a scalar slot is int64 (1).
struct SavedRows {
  Tensor value;
  std::vector<Tensor> slots;
};

/// An open checkpoint; values are read when they are asked for. Any number of threads.
class CheckpointReader {
 public:
  /// `path`: a checkpoint's folder, its index, a lone safetensors file, or the index of several
  /// (model.safetensors.index.json), whose tensors are then variables without slots. Throws
  /// kNotFound when nothing is there, kDataLoss naming the file and the variable when the parts do
  /// not fit together.
  explicit CheckpointReader(const std::string& path);

  const std::string& path() const { return path_; }
  const CheckpointIndex& index() const { return index_; }

  /// Throws kNotFound naming the nearest variable.
  SavedRows read(std::string_view name) const;
  /// Rows [first_row, first_row + rows), from as many files as hold some of them. A scalar slot is
  /// the largest of their pieces. Throws kInvalidArgument when the variable has no such rows.
  SavedRows read_rows(const SavedVariable& variable, std::int64_t first_row,
                      std::int64_t rows) const;
  /// Reads one array of the variable (0: the value, 1 + s: slot s) into memory of exactly its size.
  void read_rows(const SavedVariable& variable, std::size_t array, std::int64_t first_row,
                 std::int64_t rows, std::span<std::byte> into) const;
  /// A task's local variables, in the order of SavedTask::local.
  std::vector<NamedTensor> read_local(const SavedTask& task) const;

  /// The names that a shell pattern matches ("layer*/weights"; * also matches /), in the order
  /// of the index. Throws kNotFound when there is none, naming some that there are.
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
  std::string path;                               // for a CheckpointReader
  std::vector<FoundCheckpoint> passed_over = {};  // newer, and not whole: to be said to the user
};
/// Chooses `path` itself when it is a file or a checkpoint's folder, the tensors in a folder of
/// safetensors files, and the newest whole checkpoint of a folder of checkpoints or the --out
/// folder of a run. RUN:best is the one that --keep-best has kept. Throws kNotFound saying what
/// there is instead, and kDataLoss when the checkpoint that was named is not whole.
ChosenCheckpoint find_checkpoint(const std::string& path, WholeCheck check);
/// "passes over a checkpoint that is not whole: WHY"
std::string passed_over_text(const FoundCheckpoint& torn);
/// RUN of RUN:best; nothing when `path` names something else, or a file or folder of that name.
std::optional<std::string> run_of_best(const std::string& path);
/// The checkpoints that `path` names, when it is a folder of checkpoints or the --out folder of a
/// run.
std::optional<Checkpoints> checkpoints_in(const std::string& path);

}  // namespace paceline
