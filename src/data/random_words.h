// A stream of random numbers, for data that is generated.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/philox.h"

namespace paceline {

/// The random numbers of a key and a stream, one after the other.
class RandomWords {
 public:
  explicit RandomWords(std::uint64_t key, std::uint64_t stream = 0) : key_(key), stream_(stream) {}
  /// In [0, 1).
  double uniform() {
    if (used_ == 4) {
      block_ = philox(key_, counter_++, stream_);
      used_ = 0;
    }
    return double(block_[used_++]) * 0x1p-32;
  }
  double between(double least, double most) { return least + (most - least) * uniform(); }
  int below(int n) { return int(uniform() * n); }

 private:
  std::uint64_t key_, stream_, counter_ = 0;
  PhiloxBlock block_{};
  std::size_t used_ = 4;
};

}  // namespace paceline
