// The best rates of this machine: of products, memory and links.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/thread_pool.h"
#include "bench/memory_rates.h"
#include "bench/recorder.h"
#include "kernels/cpu/plain_product.h"

namespace paceline::bench {

/// Rates of all threads together.
struct Roof {
  double flops_per_s = 0;       // products
  double bytes_per_s = 0;       // memory that is read and written
  double link_bytes_per_s = 0;  // one way; 0: no link
  std::size_t cache_bytes = 0;  // smaller arrays stay in the caches
};

/// Products on several threads, each with operands of its own.
class Products {
 public:
  /// Throws kUnavailable, as PlainProduct.
  Products(DType dtype, int threads);
  void run();
  double flops() const;

 private:
  ThreadPool pool_;
  std::vector<PlainProduct> products_;
};

/// Measures the roof again and again, beside the figures that are compared with it.
class RoofMeter {
 public:
  /// `precision` is that of the products. Throws kUnavailable, as PlainProduct does.
  RoofMeter(DType precision, int threads, double link_bytes_per_s);
  /// Takes about 1.7 s: three times 0.25 s of products and of passes over memory each, and finding
  /// how many of them take so long.
  Roof measure();

 private:
  Products products_;
  MemoryPasses memory_;
  double link_bytes_per_s_;
};

/// Returns the numbers of threads to measure: all up to eight, then powers of two and all cores.
std::vector<int> thread_counts(int cores);

/// The case `roof`.
void measure_roof(Recorder& recorder);

}  // namespace paceline::bench
