// Processes of this host that reduce over a link.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace paceline::bench {

struct ReducingOptions {
  std::string link = "shm";  // if the link shares memory, members sum in place, else in a ring
  int members = 2;           // at most 8
  std::size_t bytes = 4096;  // of float32 numbers
};

/// This process is the first member. The other members are started with the group and end with it.
class ReducingGroup {
 public:
  virtual ~ReducingGroup() = default;
  /// Returns the seconds of a reduction in this process (Reducer::reduce).
  virtual double reduce() = 0;
  /// Until `resume`, the other members take no core.
  virtual void pause() = 0;
  virtual void resume() = 0;
};

/// Makes a group, and checks the sums of a first reduction.
std::unique_ptr<ReducingGroup> make_reducing_group(const ReducingOptions& options);

}  // namespace paceline::bench
