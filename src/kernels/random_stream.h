// The random words of one node in one step. They depend on (seed, stream, task, step, block) alone,
// so naive and fast kernels draw equal words on any number of threads.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/philox.h"
#include "paceline/op.h"

namespace paceline {

class RandomStream {
 public:
  /// Tasks below 2^16 and steps below 2^48 have separate words.
  RandomStream(const StepIdentity& step, std::string_view stream)
      : key_(random_key(step.seed, stream)),
        high_((std::uint64_t(step.task) << 48) ^ std::uint64_t(step.step)) {}

  /// Returns the words of the elements [4·block, 4·block + 4).
  PhiloxBlock block(std::int64_t block) const { return philox(key_, std::uint64_t(block), high_); }

  /// Philox's key, and the high half of its counter; the low half is the block.
  std::uint64_t key() const { return key_; }
  std::uint64_t high() const { return high_; }

 private:
  std::uint64_t key_, high_;
};

/// Returns an integer in [low, low + range) for a range of 1 to 2^32.
inline std::int32_t to_integer(std::uint32_t word, std::int64_t low, std::uint64_t range) {
  return std::int32_t(low + std::int64_t((std::uint64_t(word) * range) >> 32));
}

/// Returns the stream that a node draws from: its own name, or that of the node whose mask it
/// repeats.
inline std::string_view stream_of(const Node& node) {
  return node.attributes().has("stream") ? node.attributes().get<std::string>("stream")
                                         : node.name();
}

}  // namespace paceline
