#include "cli/flags/prediction_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "cli/flags/flag_checks.h"
#include "cli/flags/straggler.h"
#include "params/strategy/strategies.h"
#include "params/strategy/strategy_fields.h"
#include "run/gnuplot.h"

namespace paceline {

namespace {

// The flags that name the tasks and their places.
constexpr const char* kNameTasks[] = {"--workers",      "--cluster",          "--ps-hosts",
                                      "--worker-hosts", "--existing-servers", "--task",
                                      "--job-name",     "--lab-place"};
// The flags that concern workers, beside the options of strategies. Those of the second list
// concern parameter servers, too.
constexpr const char* kOfWorkers[] = {"--ps", "--sparse", "--dense", "--lab-hosts",
                                      "--sim-straggler"};
constexpr const char* kOfServers[] = {"--wire", "--top-k", "--error-feedback"};

bool chooses(const FlagValues& values) {
  return values.given("--predict") || values.text("--strategy") == kAutomatic;
}

bool names_strategy(const FlagValues& values) {
  const std::string strategy = values.text("--strategy");
  return !strategy.empty() && strategy != kAutomatic;
}

// Returns the smallest number of workers that the other flags allow. The readers of these flags
// report faults in them.
int few_workers(const FlagValues& values) {
  const int replicas = std::atoi(values.text("--replicas-to-aggregate").c_str());
  const auto straggler = straggler_named(values.text("--sim-straggler"));
  return std::max({2, replicas, straggler ? straggler->worker + 1 : 0});
}

}  // namespace

void leave_counts_open(FlagValues& values) {
  const auto is_given = [&](const char* flag) { return values.given(flag); };
  if (!chooses(values)) return;
  const bool of_servers = std::ranges::any_of(kOfServers, is_given);
  const bool of_workers = of_servers || names_strategy(values) ||
                          std::ranges::any_of(kOfWorkers, is_given) ||
                          std::ranges::any_of(strategy_fields(), is_given, &StrategyField::flag);
  if (of_workers && std::ranges::none_of(kNameTasks, is_given)) {
    values.leave_open("--workers", std::to_string(few_workers(values)));
  }
  // If no flag concerns parameter servers, --ps need not be given.
  const bool launches = values.given("--workers") && !values.given("--existing-servers");
  if (launches && !values.given("--ps") && (of_servers || names_strategy(values))) {
    values.leave_open("--ps", is_without_ps(values.text("--strategy")) ? "0" : "1");
  }
}

PredictionOptions read_prediction(const FlagValues& values) {
  PredictionOptions prediction;
  prediction.asked = values.given("--predict");
  prediction.trial = chooses(values) && !values.given("--no-trial");
  prediction.copies_by = values.text("--copies-by");
  prediction.time_limit_s =
      values.positive_number("--time-limit").value_or(prediction.time_limit_s);
  prediction.hosts = values.text("--hosts");
  prediction.roof = values.text("--roof");
  prediction.json = values.text("--json");
  prediction.plot = values.text("--plot");
  check_together(values, "--hosts", "--predict", "what reads it");
  for (const char* flag : {"--json", "--plot"}) {
    check_together(values, flag, "--predict", "what writes it");
    if (values.given(flag)) check_new_file(flag, values.text(flag));
  }
  if (values.given("--plot")) terminal_for("--plot", prediction.plot);
  for (const char* flag : {"--hosts", "--roof"}) {
    const std::string path = values.text(flag);
    if (values.given(flag) && access(path.c_str(), R_OK) != 0) {
      refuse_flag(flag, path, "cannot be read");
    }
  }
  if (values.given("--lab-hosts") || values.given("--lab-place")) {
    prediction.link_gbps = values.positive_number("--lab-gbps").value_or(1);
    prediction.link_delay_ms = values.number_from_zero("--lab-delay-ms").value_or(0);
  }
  const bool no_ps_given = !values.given("--ps") && !values.given("--existing-servers");
  prediction.any_ps = values.is_open("--ps") || (no_ps_given && !names_strategy(values));
  prediction.any_workers = values.is_open("--workers");
  prediction.this_strategy = names_strategy(values);
  prediction.this_wire = values.given("--wire") || values.given("--top-k");
  // The reader of the cluster reports faults in this flag.
  if (const auto straggler = straggler_named(values.text("--sim-straggler"))) {
    prediction.straggler = straggler->worker;
    prediction.straggler_times = straggler->times;
  }
  return prediction;
}

}  // namespace paceline
