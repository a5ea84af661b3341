// Sums over large inputs, cut into blocks that threads claim. Blocks are of a fixed size and added
// in order, so the result does not depend on the number of threads.
#pragma once

#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "paceline/shape.h"

namespace paceline {

/// The blocks of one or several inputs.
class BlockSum {
 public:
  struct Block {
    std::size_t input;
    std::int64_t begin, size;
  };

  /// Call once for each input, in order.
  void add_input(std::int64_t elements) {
    for (std::int64_t begin = 0; begin < elements; begin += kBlock) {
      blocks_.push_back({inputs_, begin, std::min(kBlock, elements - begin)});
    }
    ++inputs_;
  }

  std::size_t scratch_bytes() const { return blocks_.size() * sizeof(double); }

  /// Σ f(block) over all blocks. `scratch`: scratch_bytes(), aligned for double.
  template <typename F>
  double run(ThreadPool& pool, std::span<std::byte> scratch, F&& f) const {
    auto* sums = reinterpret_cast<double*>(scratch.data());
    auto tile = [&](std::int64_t i) { sums[i] = f(blocks_[std::size_t(i)]); };
    pool.run_tiles(std::int64_t(blocks_.size()), TileFunction(tile));
    double sum = 0;
    for (std::size_t i = 0; i < blocks_.size(); ++i) sum += sums[i];
    return sum;
  }

 private:
  static constexpr std::int64_t kBlock = 32768;
  std::vector<Block> blocks_;
  std::size_t inputs_ = 0;
};

}  // namespace paceline
