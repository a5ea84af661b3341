// One call of a command that measures.
#pragma once

#include <string>

#include "bench/recorder.h"

namespace paceline::bench {

/// The largest --repeat.
constexpr int kMostRepeats = 1000;

/// Prints the heading of the figures, with the machine and the date, and writes the figures to a
/// file.
class Measuring {
 public:
  /// `command`: the command line. `json`: the file, or empty for none. `repeats`: of most figures.
  /// Throws kUsage when the file cannot be made.
  Measuring(const std::string& command, std::string json, int repeats);

  Recorder& recorder() { return recorder_; }
  /// Writes what was measured so far, so that a later failure does not lose it.
  void keep() const;

 private:
  const std::string json_;
  const Circumstances circumstances_;
  Recorder recorder_;
};

}  // namespace paceline::bench
