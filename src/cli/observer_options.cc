#include "cli/observer_options.h"

#include "cli/dry_run.h"
#include "paceline/program.h"
#include "predict/measured_machine.h"
#include "predict/prediction_observer.h"
#include "predict/shape_predictor.h"

namespace paceline {

std::vector<MakeObserver> ObserverOptions::observers() const {
  if (dry_run) return {show_dry_run()};
  if (prediction.asked) return {show_shapes(prediction)};
  return {say_prediction(prediction), measure_machine(), watch_job(dashboard)};
}

std::vector<MakeObserver> program_observers(const DashboardOptions& dashboard) {
  return ObserverOptions{.dashboard = dashboard, .prediction = {}}.observers();
}

}  // namespace paceline
