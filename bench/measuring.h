// One invocation of a command that measures.
#pragma once

#include <string>

#include "bench/recorder.h"

namespace paceline::bench {

/// The largest --repeat.
constexpr int kMostRepeats = 1000;

/// The largest allowed --repeat.
class Measuring {
 public:
  /// Prints the heading of the figures, with the machine and the date, and writes the figures to a
  /// file.
  Measuring(const std::string& command, std::string json, int repeats);

  Recorder& recorder() { return recorder_; }
  /// Writes the measurements so far, so that a later failure does not lose them.
  void keep() const;

 private:
  const std::string json_;
  const Circumstances circumstances_;
  Recorder recorder_;
};

}  // namespace paceline::bench
