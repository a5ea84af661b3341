// The checkpoints of a run, CHECKPOINTS/step-N/: which are there, which is the newest whole one,
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
  kChecksums,  // reads every byte; about a second for each GB that is not in memory
};

struct FoundCheckpoint {
  std::string path;  // CHECKPOINTS/step-N
  std::int64_t step = 0;
  std::string torn;  // why it is not whole; empty: it is
};

class Checkpoints {
 public:
  /// `folder`: CHECKPOINTS; it need not be there.
  explicit Checkpoints(std::string folder, const Disk& disk = Disk::machine());

  const std::string& folder() const { return folder_; }
  std::string path_of(std::int64_t step) const;
  /// Returns the checkpoints by step, the newest first, without one that is still being written.
  /// Throws kNotFound when the folder is there and cannot be read, and as why_torn().
  std::vector<FoundCheckpoint> list(WholeCheck check) const;

  struct Newest {
    std::optional<FoundCheckpoint> whole;
    std::vector<FoundCheckpoint> torn;  // newer ones, skipped; the user is told
  };
  Newest newest_whole(WholeCheck check) const;
  /// Returns the newest checkpoint, for the message of an error.
  std::optional<FoundCheckpoint> newest_to_name() const;

  /// Deletes all but the last `count` whole ones, at least 1, the one that is marked as the best,
  /// and those of the steps `also`; torn ones only where they are older than the newest whole one.
  /// Returns the paths of those deleted. None is ever left half: it is renamed first. Throws
  /// kDataLoss, and deletes nothing, when the mark of the best cannot be read.
  std::vector<std::string> keep_last(int count, std::span<const std::int64_t> also = {}) const;
  /// Deletes the checkpoint of this step, if there is one.
  void remove(std::int64_t step) const;
  /// Renames the checkpoint of this step, so that it no longer counts as one. The new name replaces
  /// what has it. Returns the new path.
  std::string put_aside(std::int64_t step) const;
  /// Deletes what an ended process left unfinished. Only when nobody is saving here.
  void remove_unfinished() const;

  /// Returns the mark of the best checkpoint; nothing when the run keeps none. Throws kDataLoss
  /// when it cannot be read.
  std::optional<BestMark> mark() const;
  /// Replaces the mark as a whole. BestKeeper alone calls it.
  void set_mark(const BestMark& mark) const;
  /// Returns the checkpoint that is marked as the best, after this check. Throws kNotFound when
  /// none is marked, kDataLoss when it is not whole.
  FoundCheckpoint best(WholeCheck check) const;
  /// Deletes the mark and all reports. No error when there are none.
  void remove_mark() const;

  /// Reports what an evaluation beside the run found, in place of an older report of that step.
  void report(const EvaluationReport& report) const;
  /// Returns the paths of the reports that nobody has taken yet.
  std::vector<std::string> reports() const;
  EvaluationReport read_report(const std::string& path) const;
  void remove_report(const std::string& path) const;

 private:
  void write_whole(const std::string& name, const std::string& text) const;

  const std::string folder_;
  const Disk& disk_;
};

/// Returns why the checkpoint in this folder is not whole: a file that is missing, short or
/// changed; empty: it is whole. Throws kUnavailable, naming the file, when the system cannot read
/// one that exists.
std::string why_torn(const std::string& path, WholeCheck check);
/// Reads PATH/index.json. Throws kNotFound or kDataLoss.
CheckpointIndex read_index(const std::string& path);

constexpr const char* kIndexName = "index.json";
/// No index is longer.
constexpr std::uint64_t kMaxIndexBytes = std::uint64_t{1} << 28;

}  // namespace paceline
