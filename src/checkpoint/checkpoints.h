// The checkpoints of a run, CHECKPOINTS/step-N/: which ones exist, which is the newest whole one,
// and which are no longer needed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/best_mark.h"
#include "checkpoint/checkpoint_index.h"
#include "checkpoint/disk.h"

namespace paceline {

/// How thoroughly a checkpoint's files are compared with its index.
enum class WholeCheck {
  kSizes,      // reads no file but the index
  kChecksums,  // reads every byte; takes a second for each GB that is not in memory
};

struct FoundCheckpoint {
  std::string path;  // CHECKPOINTS/step-N
  std::int64_t step = 0;
  std::string torn;  // why the checkpoint is not whole; empty if it is
};

class Checkpoints {
 public:
  /// `folder`: CHECKPOINTS; it need not be there.
  explicit Checkpoints(std::string folder, const Disk& disk = Disk::machine());

  const std::string& folder() const { return folder_; }
  std::string path_of(std::int64_t step) const;
  /// Returns the checkpoints, newest step first, without one that is still being written. Throws
  /// kNotFound if the folder exists but cannot be read, and as why_torn() does.
  std::vector<FoundCheckpoint> list(WholeCheck check) const;

  struct Newest {
    std::optional<FoundCheckpoint> whole;
    std::vector<FoundCheckpoint> torn;  // newer ones, skipped; the user is told
  };
  Newest newest_whole(WholeCheck check) const;
  /// Returns the newest whole checkpoint, for the message of an error; nullopt if there is none, or
  /// if it cannot be read.
  std::optional<FoundCheckpoint> newest_to_name() const;

  /// Deletes checkpoints, and returns their paths. Keeps the last `count` whole ones (at least 1),
  /// the one that is marked as the best, and those of the steps `also`. Torn ones are deleted only
  /// if they are older than the newest whole one. A checkpoint is renamed before it is deleted, so
  /// that half a checkpoint is never found. Throws kDataLoss, and deletes nothing, if the mark of
  /// the best cannot be read.
  std::vector<std::string> keep_last(int count, std::span<const std::int64_t> also = {}) const;
  /// Deletes the checkpoint of this step, if it exists.
  void remove(std::int64_t step) const;
  /// Renames the checkpoint of this step, so that it no longer counts as a checkpoint. Replaces a
  /// folder that has the new name. Returns the new path.
  std::string put_aside(std::int64_t step) const;
  /// Deletes what a process that ended has left unfinished. Call it only when nobody saves here.
  void remove_unfinished() const;

  /// Returns the mark of the best checkpoint; nothing if the run keeps none. Throws kDataLoss if
  /// the mark cannot be read.
  std::optional<BestMark> mark() const;
  /// Replaces the mark as a whole. Only BestKeeper calls it.
  void set_mark(const BestMark& mark) const;
  /// Returns the checkpoint that is marked as the best, after this check. Throws kNotFound if none
  /// is marked, and kDataLoss if it is not whole.
  FoundCheckpoint best(WholeCheck check) const;
  /// Deletes the mark and all reports. It is no error if there are none.
  void remove_mark() const;

  /// Reports the result of an evaluation beside the run. Replaces an older report of the same step.
  void report(const EvaluationReport& report) const;
  /// Returns the paths of the reports that BestKeeper has not read yet.
  std::vector<std::string> reports() const;
  EvaluationReport read_report(const std::string& path) const;
  void remove_report(const std::string& path) const;

 private:
  void write_whole(const std::string& name, const std::string& text) const;

  const std::string folder_;
  const Disk& disk_;
};

/// Returns why the checkpoint in this folder is not whole: a file is missing, short or changed.
/// Empty if it is whole. Throws kUnavailable, naming the file, if a file exists and the system
/// cannot read it.
std::string why_torn(const std::string& path, WholeCheck check);
/// Reads PATH/index.json. Throws kNotFound or kDataLoss.
CheckpointIndex read_index(const std::string& path);

constexpr const char* kIndexName = "index.json";
/// The most bytes of an index; a longer file is refused.
constexpr std::uint64_t kMaxIndexBytes = std::uint64_t{1} << 28;

}  // namespace paceline
