// The sizes and groups for which the case `collectives` measures each engine.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>

namespace paceline::bench {

struct ReducedSize {
  const char* name;
  std::size_t bytes;
};
constexpr ReducedSize kReducedSizes[] = {{"4 KB", 4 << 10},
                                         {"64 KB", 64 << 10},
                                         {"1 MB", 1 << 20},
                                         {"16 MB", 16 << 20},
                                         {"75 MB", 75'000'000}};
constexpr int kReducingMembers[] = {2, 4};
/// A figure is the mean of as many reductions as take at least this time together, but of at most
/// kMostReductions.
constexpr double kLeastReducingSeconds = 0.1;
constexpr int kMostReductions = 10'000;

/// Returns a name such as "75 MB between 2, shm".
inline std::string reduction_name(const ReducedSize& size, int members, const std::string& engine) {
  return fmt::format("{} between {}, {}", size.name, members, engine);
}

}  // namespace paceline::bench
