#include "checkpoint/checkpoint_save.h"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/new_file.h"
#include "paceline/error.h"

namespace paceline {
namespace {

void write_index(const std::string& folder, const CheckpointIndex& index, const Disk& disk) {
  const std::string json = index.to_json();
  NewFile file(folder + "/" + kIndexName, disk);
  file.write_at(std::as_bytes(std::span(json)), 0);
  file.commit();
}

}  // namespace

CheckpointSave::CheckpointSave(const Checkpoints& checkpoints, std::int64_t step, const Disk& disk)
    : checkpoints_(checkpoints), disk_(disk), folder_(checkpoints.path_of(step) + ".part") {
  checkpoints.remove_unfinished();
  disk_.make_folder(folder_);
}

CheckpointSave::~CheckpointSave() {
  if (!finished_) disk_.remove(folder_);
}

std::string CheckpointSave::finish(const CheckpointIndex& index) {
  check_index(index, folder_);
  write_index(folder_, index, disk_);
  if (const std::string torn = why_torn(folder_, WholeCheck::kSizes); !torn.empty()) {
    throw Error(ErrorCode::kDataLoss, torn);
  }
  std::string path = checkpoints_.path_of(index.global_step);
  if (why_torn(path, WholeCheck::kSizes).empty()) return path;
  checkpoints_.remove(index.global_step);
  disk_.rename(folder_, path);
  finished_ = true;
  disk_.sync_folder(checkpoints_.folder());
  return path;
}

std::string shard_name(int shard, int shards) {
  return fmt::format("shard-{}-of-{}.safetensors", shard, shards);
}

std::string local_name(const std::string& task) {
  std::string name = task;
  std::ranges::replace(name, ':', '-');
  return fmt::format("local-{}.safetensors", name);
}

std::vector<TensorInfo> shard_tensors(std::span<const SavedVariable> variables,
                                      const std::string& file) {
  std::vector<TensorInfo> tensors;
  for (const SavedVariable& variable : variables) {
    for (const SavedPiece& piece : variable.pieces) {
      if (piece.file != file) continue;
      for (std::size_t array = 0; array < variable.arrays(); ++array) {
        tensors.push_back(piece_tensor(variable, piece, array));
      }
    }
  }
  return tensors;
}

}  // namespace paceline
