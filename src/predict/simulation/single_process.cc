#include "predict/simulation/single_process.h"
#include "predict/simulation/virtual_seconds.h"

namespace paceline {

void SingleProcess::ready(VariableId variable, const std::function<void()>& done) {
  const std::int64_t each = world_.job.way.accumulate;
  if (steps() % each != each - 1) return done();
  const TimePoint begun = world_.time.now();
  machine().run(
      {.bytes = world_.use(variable).rule_bytes, .threads = world_.job.step->rule_threads},
      [this, begun, done] {
        spend_on_rules(seconds_of(world_.time.now() - begun));
        done();
      });
}

}  // namespace paceline
