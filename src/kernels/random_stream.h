// The random words of one node in one step: a function of (seed, stream, task, step, block) alone,
// so that naive and fast kernels on any number of threads draw the same.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/philox.h"
#include "paceline/op.h"

namespace paceline {

class RandomStream {
 public:
  /// Tasks up to 2^16 and steps up to 2^48 do not meet.
  RandomStream(const StepIdentity& step, std::string_view stream)
      : key_(random_key(step.seed, stream)),
        high_((std::uint64_t(step.task) << 48) ^ std::uint64_t(step.step)) {}

  /// Words of the elements [4·block, 4·block + 4).
  PhiloxBlock block(std::int64_t block) const { return philox(key_, std::uint64_t(block), high_); }

  /// Philox's key, and the high half of its counter; the low half is the block.
  std::uint64_t key() const { return key_; }
  std::uint64_t high() const { return high_; }

 private:
  std::uint64_t key_, high_;
};

/// In [low, low + range) for a range of 1 to 2^32.
inline std::int32_t to_integer(std::uint32_t word, std::int64_t low, std::uint64_t range) {
  return std::int32_t(low + std::int64_t((std::uint64_t(word) * range) >> 32));
}

/// The name under which a node draws: its own, or that of the node whose mask it repeats.
inline std::string_view stream_of(const Node& node) {
  return node.attributes().has("stream") ? node.attributes().get<std::string>("stream")
                                         : node.name();
}

}  // namespace paceline
