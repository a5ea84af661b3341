#include "predict/simulation/single_process.h"

namespace paceline {

void SingleProcess::ready(VariableId variable, const std::function<void()>& done) {
  const std::int64_t each = world_.job.way.accumulate;
  if (steps() % each != each - 1) return done();
  const TimePoint begun = world_.time.now();
  machine().run(
      {.bytes = world_.use(variable).rule_bytes, .threads = world_.job.step->rule_threads},
      [this, begun, done] {
        spend_on_rules(double((world_.time.now() - begun).count()) * 1e-9);
        done();
      });
}

}  // namespace paceline
