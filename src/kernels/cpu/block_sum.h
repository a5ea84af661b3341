// Sums over large inputs, cut into blocks that threads claim. Blocks have a fixed size and are
// added in order, so the result does not depend on the number of threads.
#pragma once

#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "paceline/tensor.h"

namespace paceline {

/// The blocks of one or several inputs.
class BlockSum {
 public:
  struct Block {
    std::size_t input;
    std::int64_t begin, size;
  };

  /// Call this once for each input, in order. The call takes the same time for any size, since a
  /// dry run also plans steps that fit into no memory.
  void add_input(std::int64_t elements) {
    inputs_.push_back({blocks_, elements});
    blocks_ += (elements + kBlock - 1) / kBlock;
  }

  std::size_t scratch_bytes() const { return std::size_t(blocks_) * sizeof(double); }

  /// Returns Σ f(block) over all blocks. `scratch` has scratch_bytes() bytes, aligned for double.
  template <typename F>
  double run(ThreadPool& pool, std::span<std::byte> scratch, F&& f) const {
    auto* sums = reinterpret_cast<double*>(scratch.data());
    auto tile = [&](std::int64_t i) { sums[i] = f(block(i)); };
    pool.run_tiles(blocks_, TileFunction(tile));
    double sum = 0;
    for (std::int64_t i = 0; i < blocks_; ++i) sum += sums[i];
    return sum;
  }

 private:
  static constexpr std::int64_t kBlock = 32768;
  struct Input {
    std::int64_t first_block, elements;
  };

  Block block(std::int64_t number) const {
    const auto next = std::ranges::upper_bound(inputs_, number, {}, &Input::first_block);
    const Input& input = *std::prev(next);
    const std::int64_t begin = (number - input.first_block) * kBlock;
    return {std::size_t(next - inputs_.begin()) - 1, begin,
            std::min(kBlock, input.elements - begin)};
  }

  std::vector<Input> inputs_;
  std::int64_t blocks_ = 0;
};

}  // namespace paceline
