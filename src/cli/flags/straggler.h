// The worker that --sim-straggler makes slower than the others.
#pragma once

#include <optional>
#include <string_view>

namespace paceline {

struct Straggler {
  int worker = 0;
  double times = 1;       // how many times as long its steps take
  double copy_times = 1;  // how many times as long its copies take
};

/// Reads "1:3": worker 1 is 3 times as slow. With "1:3:2" it also copies half as fast. Returns
/// nothing for other texts.
std::optional<Straggler> straggler_named(std::string_view text);

}  // namespace paceline
