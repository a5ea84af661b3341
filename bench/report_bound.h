// The speed that hardware allows to a row of the reports.
#pragma once

#include <vector>

#include "base/real_clock.h"
#include "bench/generated_text.h"
#include "bench/report_rows.h"
#include "models/model.h"
#include "predict/roof.h"
#include "predict/speed_bound.h"
#include "predict/step_cost.h"
#include "predict/step_schedule.h"

namespace paceline::bench {

/// The workers of a row that are as fast as their devices are.
int counted_workers(const ReportRow& row);

/// The bound of a row by its own strategy. A straggler should take nothing from the other workers.
class ReportBound {
 public:
  ReportBound(const ReportRow& row, GeneratedText& text);
  SpeedBound by(const Roof& roof) const;

 private:
  JobHosts hosts(const Roof& roof) const;
  SpeedBound one_process(const Roof& roof) const;
  SpeedBound local_steps(const Roof& roof) const;

  const ReportRow& row_;
  std::vector<VariableSpec> specs_;
  StepCost work_;
  StepSchedule schedule_;
};

}  // namespace paceline::bench
