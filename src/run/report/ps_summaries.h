// Event files of a ps, for TensorBoard.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "params/ps/serve.h"
#include "run/log.h"
#include "summary/event_writer.h"

namespace paceline {

/// Writes the numbers of a ps since the last call (docs/summaries.md), on one thread.
class PsSummaries {
 public:
  /// `folder` is DIR/summaries. `log`, which may be null, gets one line when they cannot be
  /// written.
  PsSummaries(const std::string& folder, const TaskId& task, const Log* log)
      : folder_(folder + "/" + task.str()), log_(log) {}
  void add(const PsSummary& now);

 private:
  void write(const PsSummary& now);

  const std::string folder_;
  const Log* const log_;
  std::optional<EventWriter> writer_;
  bool failed_ = false;
  PsSummary last_;
};

}  // namespace paceline
