#include "predict/simulation/simulated_local_store.h"

#include "predict/simulation/virtual_seconds.h"

namespace paceline {

void SimulatedLocalStore::ready(VariableId variable, const Done& done) {
  const TimePoint begun = time_.now();
  machine_.run({.rule_bytes = step_.variables[std::size_t(variable)].rule_bytes,
                .threads = step_.rule_threads},
               [this, begun, done] {
                 user().spent(&SpentSeconds::rules, seconds_of(time_.now() - begun));
                 done();
               });
}

}  // namespace paceline
