// The time that a step takes beside other workers on the same machine, as copies that ran at once
// have shown it.
#pragma once

#include <map>
#include <span>
#include <string>

#include "train/copies_at_once.h"

namespace paceline {

/// Copies share more than cores: the rate of memory, caches and the clock of the cores. So their
/// steps say more than a model of the cores does.
class StepsBeside {
 public:
  StepsBeside() = default;
  /// `alone_s` is the time of a step of one process, in seconds; above 0.
  explicit StepsBeside(double alone_s) : alone_s_(alone_s) {}

  /// Adds the paces of copies that ran at once, one for each copy. There must be two at least.
  void add(std::span<const StepPace> paces);
  bool empty() const { return measured_.empty(); }
  /// The largest number of copies that ran at once; 1 if none did.
  int most() const;
  /// Returns the time of a step of one of `workers` workers on a machine ÷ that of a step alone.
  /// Between two measured numbers of copies the time of a step grows evenly; beyond the largest it
  /// grows no more.
  double slowdown(double workers) const;
  /// Returns the cores that one of `workers` workers keeps busy, found in the same way; 0: not
  /// known. There must be measurements.
  double busy_cores(double workers) const;

  double alone_s() const { return alone_s_; }
  /// The measured pace of copies that ran at once.
  struct Measured {
    double seconds = 0;      // the mean time of their steps
    double busy_cores = 0;   // the mean of the cores that each of them kept busy
    double steps_per_s = 0;  // of all of them together
  };
  /// By the number of copies.
  const std::map<int, Measured>& measured() const { return measured_; }
  /// Returns a line such as "2 copies at once: 2.04 steps/s together, 1.3 alone" for each number of
  /// copies.
  std::string text() const;

 private:
  double between(double workers, double alone, double Measured::*part) const;

  double alone_s_ = 0;
  std::map<int, Measured> measured_;
};

}  // namespace paceline
