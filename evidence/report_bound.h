// The speed that hardware allows a row of the reports.
#pragma once

#include <vector>

#include "base/real_clock.h"
#include "bench/generated_text.h"
#include "evidence/report_rows.h"
#include "evidence/speed_bound.h"
#include "evidence/step_schedule.h"
#include "models/model.h"
#include "predict/prediction.h"
#include "predict/step_cost.h"

namespace paceline::bench {

/// Returns the number of the row's workers, without its straggler.
int counted_workers(const ReportRow& row);

/// The bound of a row by its own strategy, for the workers without the straggler, which should slow
/// down no other worker.
class ReportBound {
 public:
  ReportBound(const ReportRow& row, GeneratedText& text);
  SpeedBound by(const PredictedHost& machine) const;

 private:
  JobHosts hosts(const PredictedHost& machine) const;
  SpeedBound one_process(const PredictedHost& machine) const;
  SpeedBound local_steps(const PredictedHost& machine) const;

  const ReportRow& row_;
  std::vector<VariableSpec> specs_;
  StepCost work_;
  StepSchedule schedule_;
};

}  // namespace paceline::bench
