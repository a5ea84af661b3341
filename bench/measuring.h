// One invocation of a command that measures.
#pragma once

#include <string>

#include "bench/recorder.h"

namespace paceline::bench {

/// The largest --repeat.
constexpr int kMostRepeats = 1000;

/// One invocation of a command that measures, with its figures and their circumstances.
class Measuring {
 public:
  /// Prints the heading of the figures, with the machine and the date. `json` is the file that
  /// keep() writes; empty: none.
  Measuring(const std::string& command, std::string json, int repeats);

  Recorder& recorder() { return recorder_; }
  /// Writes the figures so far to the file, so that a later failure does not lose them.
  void keep() const;

 private:
  const std::string json_;
  const Circumstances circumstances_;
  Recorder recorder_;
};

}  // namespace paceline::bench
