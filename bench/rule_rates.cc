#include "bench/rule_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/cores.h"
#include "bench/timing.h"
#include "kernels/rule_kernel.h"
#include "kernels/testing/custom_rules.h"
#include "predict/memory_passes.h"
#include "predict/step_cost.h"

namespace paceline::bench {
namespace {

constexpr std::size_t kElements = std::size_t(1) << 24;  // of a variable: 64 MiB
constexpr std::int64_t kGrain = 1 << 16;
constexpr double kNano = 1e9;

/// A variable with the slots of any rule, and a gradient.
class RuleMemoryArrays {
 public:
  RuleMemoryArrays() {
    for (Buffer* buffer : {&values_, &first_, &second_, &gradient_}) {
      std::fill_n(floats(*buffer), kElements, 0.01f);
    }
  }

  void apply(const Rule& rule, ThreadPool& pool) {
    pool.parallel_for(std::int64_t(kElements), kGrain, [&](std::int64_t begin, std::int64_t end) {
      std::array<float*, 2> slots = {floats(first_) + begin, floats(second_) + begin};
      const auto size = std::size_t(end - begin);
      apply_rule(rule, {.learning_rate = 1e-4f},
                 {{floats(values_) + begin, size},
                  std::span(slots).first(array_slots(rule)),
                  {floats(gradient_) + begin, size}});
    });
  }

 private:
  static float* floats(const Buffer& buffer) { return reinterpret_cast<float*>(buffer.data()); }
  static std::size_t array_slots(const Rule& rule) {
    const auto slots = rule.slots();
    return std::size_t(std::ranges::count(slots, false, &SlotSpec::scalar));
  }

  Buffer values_{kElements * sizeof(float)}, first_{kElements * sizeof(float)},
      second_{kElements * sizeof(float)}, gradient_{kElements * sizeof(float)};
};

std::vector<double> scaled(std::vector<double> values, double factor) {
  for (double& value : values) value *= factor;
  return values;
}

std::string on_threads(std::string_view what, int threads) {
  return fmt::format("{}, {} thread{}", what, threads, threads == 1 ? "" : "s");
}

void measure_rule(Recorder& recorder, const Rule& rule, RuleMemoryArrays& arrays, int threads) {
  const std::string name = on_threads(rule.name(), threads);
  recorder.progress(name);
  ThreadPool pool(threads);
  MemoryPasses memory(threads);
  const PairedTimes times = time_in_turn(
      recorder.repeats(), 0.05, [&] { arrays.apply(rule, pool); }, [&] { memory.update(); });
  const double bytes = rule_bytes_per_element(rule);
  recorder.add(figure_beside(name, "ns", scaled(times.first, kNano / double(kElements)),
                             "memory bound",
                             scaled(times.second, kNano * bytes / memory.update_bytes())));
}

// Adam as a CustomRule beside the library's own, by turns.
void measure_written_adam(Recorder& recorder, RuleMemoryArrays& arrays, int threads) {
  const std::string name = on_threads("adam written out", threads);
  recorder.progress(name);
  ThreadPool pool(threads);
  const Rule written = written_adam(), built_in = Adam{};
  const PairedTimes times = time_in_turn(
      recorder.repeats(), 0.05, [&] { arrays.apply(written, pool); },
      [&] { arrays.apply(built_in, pool); });
  recorder.add(figure_beside(name, "ns", scaled(times.first, kNano / double(kElements)), "built in",
                             scaled(times.second, kNano / double(kElements))));
}

}  // namespace

void measure_rules(Recorder& recorder) {
  RuleMemoryArrays arrays;
  std::vector<int> counts = {1};
  if (cores_of_machine() > 1) counts.push_back(cores_of_machine());
  for (const int threads : counts) {
    for (const Rule& rule :
         std::initializer_list<Rule>{Sgd{}, Momentum{}, Adam{}, AdamW{}, Adagrad{}, Rmsprop{},
                                     Ftrl{}, Ema{}, Add{}, Assign{}}) {
      measure_rule(recorder, rule, arrays, threads);
    }
    measure_written_adam(recorder, arrays, threads);
  }
}

}  // namespace paceline::bench
