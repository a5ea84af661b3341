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

/// How a checkpoint's files are compared with its index.
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
    std::vector<FoundCheckpoint> torn;  // newer than that one: skipped, to be said to the user
  };
  Newest newest_whole(WholeCheck check) const;
  /// For the message of an error: the newest that can be found.
  std::optional<FoundCheckpoint> newest_to_name() const;

  /// Deletes all but the last `count` whole ones, at least 1, the one that is marked as the best,
  /// and those of the steps `also`; torn ones only where they are older than the newest whole one.
  /// Returns the paths of those deleted. None is ever left half: it is renamed first. Throws
  /// kDataLoss, and deletes nothing, when the mark of the best cannot be read.
  std::vector<std::string> keep_last(int count, std::span<const std::int64_t> also = {}) const;
  /// Deletes one. No error when it is not there.
  void remove(std::int64_t step) const;
  /// Renames one, so that it is none any more, in place of what has that name. Returns its path
  /// now.
  std::string put_aside(std::int64_t step) const;
  /// Deletes what an ended process left unfinished. Only when nobody is saving here.
  void remove_unfinished() const;

  /// Returns the mark of the best checkpoint; nothing when the run keeps none. Throws kDataLoss
  /// when it cannot be read.
  std::optional<BestMark> mark() const;
  /// Replaces the mark as a whole. BestKeeper alone calls it.
  void set_mark(const BestMark& mark) const;
  /// Returns the checkpoint that is marked as the best, whole by that check. Throws kNotFound when
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

/// Why the checkpoint in this folder is not whole: what is missing, short or changed; empty: it is.
/// Throws kUnavailable, naming the file, when the system cannot read one that is there.
std::string why_torn(const std::string& path, WholeCheck check);
/// Reads PATH/index.json. Throws kNotFound or kDataLoss.
CheckpointIndex read_index(const std::string& path);

constexpr const char* kIndexName = "index.json";
/// No index is longer.
constexpr std::uint64_t kMaxIndexBytes = std::uint64_t{1} << 28;

}  // namespace paceline
