// What is planned of a session before any batch: its graphs with the usual sizes of open
// dimensions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "graph/open_graph.h"
#include "paceline/observer.h"
#include "paceline/session.h"

namespace paceline {

/// The trainings and graphs of a session as observers see them. A graph without open dimensions
/// stands for itself, and so does an untrained graph without usual sizes.
class UsualSizes {
 public:
  /// Throws kFailedPrecondition when an open dimension of a trained graph has no usual size.
  UsualSizes(std::span<const Training> trainings, std::span<const Graph* const> graphs,
             const SessionOptions& options);

  PlannedSession planned(const Cluster& cluster, const RunOptions& run) const {
    return {trainings_, graphs_, cluster, run, options_};
  }
  /// The options of the session with these sizes: what to watch, and the examples of a step.
  SessionOptions& options() { return options_; }
  /// Returns the usual size of a dimension of the first graph; 1 if the dimension has none.
  std::int64_t of(std::int64_t dimension) const;

 private:
  Value of(const Value& value) const;

  std::vector<std::unique_ptr<SizedCopy>> copies_;  // by graph; null: it stands for itself
  const std::vector<const Graph*> originals_;
  std::vector<const Graph*> graphs_;
  std::vector<Training> trainings_;
  SessionOptions options_;
};

}  // namespace paceline
