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

  /// True if the job is only described or predicted, and not trained.
  bool only_plan() const { return dry_run || prediction.asked; }
  /// Returns the observers of a run that trains, or the ones that replace training.
  std::vector<MakeObserver> observers() const;
};

}  // namespace paceline
