// The options of run_program's observers, from flags.
#pragma once

#include <vector>

#include "paceline/dashboard.h"
#include "predict/prediction_options.h"

namespace paceline {

struct ObserverOptions {
  DashboardOptions dashboard;
  PredictionOptions prediction;
  bool dry_run = false;

  /// True when the job is described or predicted in place of being trained.
  bool only_plan() const { return dry_run || prediction.asked; }
  /// Returns the observers of a run that trains, or those that replace its training.
  std::vector<MakeObserver> observers() const;
};

}  // namespace paceline
