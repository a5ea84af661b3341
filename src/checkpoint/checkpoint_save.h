// One checkpoint while one process, or several at once, write it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_index.h"
#include "checkpoint/checkpoints.h"
#include "checkpoint/disk.h"

namespace paceline {

/// The chief holds this while a checkpoint is written. How ps tasks write their shards in parallel:
///
///   1. The chief makes a CheckpointSave, which makes the folder, and tells its path to every ps.
///   2. Each ps opens a SafetensorsWriter for folder()/shard_name(i, n) with shard_tensors(…), and
///      while training goes on takes piece after piece: the value and the slots of a piece at one
///      moment, under that piece's lock, into a buffer that is as large as the largest piece; then
///      writes them without the lock. finish() gives the WrittenFile that it answers with.
///      Each worker with local variables does the same with folder()/local_name(task).
///   3. The chief puts the answers into the index and calls finish(index): the index is written
///      last, and the folder gets its name. Only now there is a checkpoint.
///
/// Where the hosts share no folder the chief writes all files itself, from what the shards send.
/// An object that goes without finish() removes the folder: a ps that fails, a full disk. What a
/// killed process leaves is removed by the next CheckpointSave. One thread; one at a time in a
/// folder of checkpoints.
class CheckpointSave {
 public:
  /// `checkpoints`: its folder, made with its parents where it is not there. Throws as Disk does.
  CheckpointSave(const Checkpoints& checkpoints, std::int64_t step,
                 const Disk& disk = Disk::machine());
  ~CheckpointSave();
  CheckpointSave(const CheckpointSave&) = delete;
  CheckpointSave& operator=(const CheckpointSave&) = delete;

  /// The folder for the new files: CHECKPOINTS/step-N.part.
  const std::string& folder() const { return folder_; }
  /// Checks that every file is there with its size, and returns the checkpoint's path, of the step
  /// that the index says: the shards may be a few steps on. A whole checkpoint of that step
  /// stays as it is, and this one is dropped. Throws kDataLoss naming a file, or as Disk does.
  std::string finish(const CheckpointIndex& index);

 private:
  const Checkpoints& checkpoints_;
  const Disk& disk_;
  const std::string folder_;
  bool finished_ = false;
};

/// "shard-0-of-2.safetensors", "local-worker-0.safetensors".
std::string shard_name(int shard, int shards);
std::string local_name(const std::string& task);

/// The tensors of one file: of each piece in it, in order of the variables, its arrays in order.
std::vector<TensorInfo> shard_tensors(std::span<const SavedVariable> variables,
                                      const std::string& file);

}  // namespace paceline
