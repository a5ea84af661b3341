// Processes of this host that reduce over a link.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace paceline::bench {

struct ReducingOptions {
  std::string link = "shm";  // where memory is shared members sum in place, else in a ring
  int members = 2;           // at most 8
  std::size_t bytes = 4096;  // of float32 numbers
};

/// This process is the first member. The others are made with the group and end with it.
class ReducingGroup {
 public:
  virtual ~ReducingGroup() = default;
  /// Returns the seconds of a reduction (Reducer::reduce) in this process.
  virtual double reduce() = 0;
  /// Makes the others take no core until `resume`.
  virtual void pause() = 0;
  virtual void resume() = 0;
};

/// Checks the sums of a first reduction.
std::unique_ptr<ReducingGroup> make_reducing_group(const ReducingOptions& options);

}  // namespace paceline::bench
