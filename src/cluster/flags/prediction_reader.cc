#include "cluster/flags/prediction_reader.h"

#include "cluster/flags/flag_checks.h"
#include "cluster/flags/straggler.h"
#include "params/strategies.h"

namespace paceline {

PredictionOptions read_prediction(const FlagValues& values) {
  PredictionOptions prediction;
  prediction.asked = values.given("--predict");
  prediction.hosts = values.text("--hosts");
  prediction.roof = values.text("--roof");
  check_together(values, "--hosts", "--predict", "what reads it");
  if (values.given("--lab-hosts") || values.given("--lab-place")) {
    prediction.link_gbps = values.positive_number("--lab-gbps").value_or(1);
    prediction.link_delay_ms = values.number_from_zero("--lab-delay-ms").value_or(0);
  }
  const std::string strategy = values.text("--strategy");
  prediction.any_ps = (strategy.empty() || strategy == kAutomatic) && !values.given("--ps") &&
                      !values.given("--existing-servers");
  prediction.this_strategy = !strategy.empty() && strategy != kAutomatic;
  prediction.this_wire = values.given("--wire") || values.given("--top-k");
  // The cluster's reader says what is wrong with it.
  if (const auto straggler = straggler_named(values.text("--sim-straggler"))) {
    prediction.straggler = straggler->worker;
    prediction.straggler_times = straggler->times;
  }
  return prediction;
}

}  // namespace paceline
