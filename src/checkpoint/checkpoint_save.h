// One checkpoint while one process writes it, or several at once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_index.h"
#include "checkpoint/checkpoints.h"
#include "checkpoint/disk.h"

namespace paceline {

/// The chief holds this object while a checkpoint is written. ps tasks write their shards in
/// parallel:
///
///   1. The chief makes a CheckpointSave, which makes the folder. The chief tells every ps the
///      path.
///   2. Each ps opens a SafetensorsWriter for folder()/shard_name(i, n) with shard_tensors(…), and
///      goes through its pieces while training goes on. Under a piece's lock it copies the value
///      and the slots into a buffer that is as large as the largest piece; then it writes them
///      without the lock. finish() returns the WrittenFile with which the ps answers. Each worker
///      with local variables does the same with folder()/local_name(task).
///   3. The chief puts the answers into the index and calls finish(index). This writes the index
///      last and gives the folder its name; only then the checkpoint exists.
///
/// If the hosts share no folder, the chief writes all files itself, from what the ps tasks send. If
/// the object is destroyed without finish(), because a ps failed or the disk is full, it removes
/// the folder. The next CheckpointSave removes what a killed process has left. For one thread; one
/// object at a time in a folder of checkpoints.
class CheckpointSave {
 public:
  /// Removes what a killed process has left, and makes folder(), with its parents. Throws as Disk
  /// does.
  CheckpointSave(const Checkpoints& checkpoints, std::int64_t step,
                 const Disk& disk = Disk::machine());
  ~CheckpointSave();
  CheckpointSave(const CheckpointSave&) = delete;
  CheckpointSave& operator=(const CheckpointSave&) = delete;

  /// The folder for the new files: CHECKPOINTS/step-N.part.
  const std::string& folder() const { return folder_; }
  /// Writes the index, checks that every file exists with its size, gives the folder its name, and
  /// returns the checkpoint's path. The step of the checkpoint is that of the index. Since training
  /// goes on, the shards may be a few steps ahead. If there is a whole checkpoint of this step
  /// already, that one stays and this one is dropped. Throws kDataLoss naming a file, or as Disk
  /// does.
  std::string finish(const CheckpointIndex& index);

 private:
  const Checkpoints& checkpoints_;
  const Disk& disk_;
  const std::string folder_;
  bool finished_ = false;
};

/// These functions return names such as "shard-0-of-2.safetensors" and
/// "local-worker-0.safetensors".
std::string shard_name(int shard, int shards);
std::string local_name(const std::string& task);

/// Returns the tensors of one file: for each of its pieces, ordered by variable, the arrays in
/// order.
std::vector<TensorInfo> shard_tensors(std::span<const SavedVariable> variables,
                                      const std::string& file);

}  // namespace paceline
