#include "bench/roof.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/cores.h"
#include "bench/link_rates.h"
#include "bench/timing.h"
#include "paceline/error.h"
#include "predict/cipher_rate.h"

namespace paceline::bench {
namespace {

constexpr double kGiga = 1e9;
constexpr double kLeastRoofSeconds = 0.05;

std::vector<double> rates(double work, const std::vector<double>& seconds) {
  std::vector<double> rates;
  rates.reserve(seconds.size());
  for (const double time : seconds) rates.push_back(work / time / kGiga);
  return rates;
}

std::string threads_text(int threads) {
  return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
}

void measure_products(Recorder& recorder, DType dtype, int threads) {
  const std::string name = fmt::format("products in {}, {}", name_of(dtype), threads_text(threads));
  recorder.progress(name);
  try {
    Products products(dtype, threads);
    const auto seconds = time_calls(recorder.repeats(), kLeastRoofSeconds, [&] { products.run(); });
    recorder.add(figure_of(name, "GFLOP/s", rates(products.flops(), seconds)));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable) throw;
    recorder.note(fmt::format("{}: {}", name, error.what()));
  }
}

void measure_memory(Recorder& recorder, int threads) {
  MemoryPasses passes(threads);
  const auto measure = [&](const char* what, double bytes, const Call& pass) {
    const std::string name = fmt::format("memory, {}, {}", what, threads_text(threads));
    recorder.progress(name);
    const auto seconds = time_calls(recorder.repeats(), kLeastRoofSeconds, pass);
    recorder.add(figure_of(name, "GB/s", rates(bytes, seconds)));
  };
  measure("read", passes.read_bytes(), [&] { passes.read(); });
  measure("write", passes.write_bytes(), [&] { passes.write(); });
  measure("copy", passes.copy_bytes(), [&] { passes.copy(); });
  measure("update", passes.update_bytes(), [&] { passes.update(); });
  RulePasses rules(threads);
  const Rule rule = RulePasses::usual();
  measure(std::string(rule.name()).c_str(), rules.bytes(rule), [&] { rules.apply(rule); });
}

void measure_cipher(Recorder& recorder) {
  const std::string name = "encryption, AES-128-GCM, 1 thread";
  recorder.progress(name);
  std::vector<double> gbytes;
  for (int i = 0; i < recorder.repeats(); ++i) gbytes.push_back(measured_cipher_rate() / 1e9);
  recorder.add(figure_of(name, "GB/s", gbytes));
}

}  // namespace

RoofMeter::RoofMeter(DType precision, int threads, double link_bytes_per_s)
    : products_(precision, threads),
      memory_(threads),
      rules_(threads),
      link_bytes_per_s_(link_bytes_per_s) {}

Roof RoofMeter::measure() {
  // A core's clock speed may change within a second. This affects the mean of a run's steps, so it
  // must affect these times, too.
  constexpr int kTries = 3;
  constexpr double kTrySeconds = 0.25;
  const auto seconds = [](const Call& call) {
    return summarize(time_calls(kTries, kTrySeconds, call)).median;
  };
  const double product = seconds([&] { products_.run(); });
  const double update = seconds([&] { memory_.update(); });
  const Rule rule = RulePasses::usual();
  const double rules = seconds([&] { rules_.apply(rule); });
  return {.flops_per_s = products_.flops() / product,
          .bytes_per_s = memory_.update_bytes() / update,
          .rule_bytes_per_s = rules_.bytes(rule) / rules,
          .link_bytes_per_s = link_bytes_per_s_,
          .cache_bytes = cache_bytes()};
}

std::vector<int> thread_counts(int cores) {
  constexpr int kAllUpTo = 8;
  std::vector<int> counts;
  for (int count = 1; count < cores; count = count < kAllUpTo ? count + 1 : count * 2) {
    counts.push_back(count);
  }
  counts.push_back(cores);
  return counts;
}

void measure_roof(Recorder& recorder) {
  const std::vector<int> counts = thread_counts(usable_cores());
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    for (const int threads : counts) measure_products(recorder, dtype, threads);
  }
  for (const int threads : counts) measure_memory(recorder, threads);
  measure_cipher(recorder);
  measure_link_roof(recorder);
}

}  // namespace paceline::bench
