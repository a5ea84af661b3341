// The best rates of a machine: products, memory and links.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/plain_product.h"
#include "predict/memory_passes.h"
#include "predict/rule_passes.h"

namespace paceline {

/// Rates of all threads together.
struct Roof {
  double flops_per_s = 0;       // products
  double bytes_per_s = 0;       // memory: passes over one array that is read and written
  double rule_bytes_per_s = 0;  // memory, for passes over several arrays at once, as rules make
  double link_bytes_per_s = 0;  // one way; 0: no link
  std::size_t cache_bytes = 0;  // smaller arrays stay in the caches
  double others_share = 0;      // the share of measuring time in which other programs had the cores

  bool operator==(const Roof&) const = default;
};

/// True for a measurement during which other programs had the cores for more than a twentieth of
/// the time: such a measurement says little about the machine once those programs have ended.
constexpr bool is_beside_others(double others_share) { return others_share > 0.05; }

/// Products on several threads, each with operands of its own.
class Products {
 public:
  /// Throws kUnavailable, as PlainProduct does.
  Products(DType dtype, int threads);
  void run();
  double flops() const;

 private:
  ThreadPool pool_;
  std::vector<PlainProduct> products_;
};

/// The least seconds for measuring each kind of rate. The best try within that time counts.
struct RoofSeconds {
  double products = 0, memory = 0;
};

/// The memory's rates with one thread.
struct ThreadRates {
  double bytes_per_s = 0, rule_bytes_per_s = 0;
};

/// Measures roofs in arrays of its own.
class RoofMeter {
 public:
  /// Throws kUnavailable, as PlainProduct does.
  RoofMeter(DType precision, int threads)
      : products_(precision, threads), rules_(threads), memory_(threads, rules_.memory()) {}

  Roof measure(const RoofSeconds& seconds);
  /// Returns the rate of rules in arrays that the caches hold.
  double measure_cached_rules(double seconds) { return rule_rate(seconds, RulePasses::kCached); }
  /// Call this last: later measurements would also use one thread.
  ThreadRates measure_thread(const RoofSeconds& seconds);
  /// Memory that other measurements may overwrite.
  std::span<std::byte> memory() const { return rules_.memory(); }

 private:
  double memory_rate(double seconds);
  double rule_rate(double seconds, std::size_t elements);

  Products products_;
  RulePasses rules_;
  MemoryPasses memory_;
};

/// Measures products of that type, memory and rules on this many threads, in about 0.3 s. Throws
/// kUnavailable, as PlainProduct does.
Roof measure_roof(DType precision, int threads);

}  // namespace paceline
