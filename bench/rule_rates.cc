#include "bench/rule_rates.h"

#include <fmt/format.h>

#include <initializer_list>
#include <vector>

#include "base/cores.h"
#include "bench/timing.h"
#include "kernels/testing/custom_rules.h"
#include "predict/memory_passes.h"
#include "predict/rule_passes.h"

namespace paceline::bench {
namespace {

constexpr double kNano = 1e9;

std::vector<double> scaled(std::vector<double> values, double factor) {
  for (double& value : values) value *= factor;
  return values;
}

std::string on_threads(std::string_view what, int threads) {
  return fmt::format("{}, {} thread{}", what, threads, threads == 1 ? "" : "s");
}

void measure_rule(Recorder& recorder, const Rule& rule, RulePasses& passes, int threads) {
  const std::string name = on_threads(rule.name(), threads);
  recorder.progress(name);
  MemoryPasses memory(threads);
  const PairedTimes times = time_in_turn(
      recorder.repeats(), 0.05, [&] { passes.apply(rule); }, [&] { memory.update(); });
  const auto elements = double(passes.elements());
  const double bytes = passes.bytes(rule) / elements;
  recorder.add(figure_beside(name, "ns", scaled(times.first, kNano / elements), "memory bound",
                             scaled(times.second, kNano * bytes / memory.update_bytes())));
}

// Adam as a CustomRule beside the library's own, by turns.
void measure_written_adam(Recorder& recorder, RulePasses& passes, int threads) {
  const std::string name = on_threads("adam written out", threads);
  recorder.progress(name);
  const Rule written = written_adam(), built_in = Adam{};
  const PairedTimes times = time_in_turn(
      recorder.repeats(), 0.05, [&] { passes.apply(written); }, [&] { passes.apply(built_in); });
  const double scale = kNano / double(passes.elements());
  recorder.add(figure_beside(name, "ns", scaled(times.first, scale), "built in",
                             scaled(times.second, scale)));
}

}  // namespace

void measure_rules(Recorder& recorder) {
  std::vector<int> counts = {1};
  if (usable_cores() > 1) counts.push_back(usable_cores());
  for (const int threads : counts) {
    RulePasses passes(threads);
    for (const Rule& rule :
         std::initializer_list<Rule>{Sgd{}, Momentum{}, Adam{}, AdamW{}, Adagrad{}, Rmsprop{},
                                     Ftrl{}, Ema{}, Add{}, Assign{}}) {
      measure_rule(recorder, rule, passes, threads);
    }
    measure_written_adam(recorder, passes, threads);
  }
}

}  // namespace paceline::bench
