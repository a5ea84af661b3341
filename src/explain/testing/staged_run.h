// Runs that each have one cause, as their reports would show it.
#pragma once

#include <span>

#include "explain/finding.h"
#include "run/report/testing/sample_report.h"

namespace paceline {

struct StagedRun {
  const char* name;
  Limit cause;
  const char *task, *words;    // that the explanation must name
  void (*stage)(Report& run);  // turns a healthy run's report into this one
};

/// Expects that explanations name the cause of each run, its task, and these words.
void expect_told(std::span<const StagedRun> runs);

}  // namespace paceline
