#include "predict/roof.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "predict/memory_passes.h"
#include "predict/rule_passes.h"
#include "trace/pressure_counters.h"

namespace paceline {
namespace {

constexpr std::int64_t kProductSide = 1024;
constexpr int kProductsPerThread = 2;

// Returns the seconds of the fastest call among those that fit into `seconds`; makes at least one.
// The fastest call shows what the machine can do if nothing else runs on it.
template <typename Call>
double best_seconds(double seconds, const Call& call) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point begun) {
    return std::chrono::duration<double>(Clock::now() - begun).count();
  };
  const Clock::time_point first = Clock::now();
  double best = 0;
  do {
    const Clock::time_point begun = Clock::now();
    call();
    const double taken = since(begun);
    best = best == 0 ? taken : std::min(best, taken);
  } while (since(first) < seconds);
  return best;
}

}  // namespace

Products::Products(DType dtype, int threads) : pool_(threads) {
  for (int i = 0; i < threads; ++i) products_.emplace_back(dtype, kProductSide);
  run();
}

void Products::run() {
  auto tile = [this](std::int64_t i) {
    for (int k = 0; k < kProductsPerThread; ++k) products_[std::size_t(i)].run();
  };
  pool_.run_tiles(std::int64_t(products_.size()), TileFunction(tile));
}

double Products::flops() const {
  return double(products_.size()) * kProductsPerThread * products_.front().flops();
}

Roof measure_roof(DType precision, int threads) {
  return RoofMeter(precision, threads).measure({.products = 0.1, .memory = 0.05});
}

Roof RoofMeter::measure(const RoofSeconds& seconds) {
  const PressureCounters before = read_pressure_counters();
  Roof roof = {
      .flops_per_s = products_.flops() / best_seconds(seconds.products, [&] { products_.run(); }),
      .bytes_per_s = memory_rate(seconds.memory),
      .rule_bytes_per_s = rule_rate(seconds.memory, rules_.elements()),
      .link_bytes_per_s = 0,
      .cache_bytes = cache_bytes()};
  roof.others_share = queued_share(before, read_pressure_counters()).value_or(0);
  return roof;
}

ThreadRates RoofMeter::measure_thread(const RoofSeconds& seconds) {
  memory_.use_threads(1);
  rules_.use_threads(1);
  return {.bytes_per_s = memory_rate(seconds.memory),
          .rule_bytes_per_s = rule_rate(seconds.memory, rules_.elements())};
}

double RoofMeter::memory_rate(double seconds) {
  return memory_.update_bytes() / best_seconds(seconds, [&] { memory_.update(); });
}

double RoofMeter::rule_rate(double seconds, std::size_t elements) {
  const Rule rule = RulePasses::usual();
  return RulePasses::bytes(rule, elements) /
         best_seconds(seconds, [&] { rules_.apply(rule, elements); });
}

}  // namespace paceline
