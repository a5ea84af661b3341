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

/// "1:3" is worker 1, 3 times as slow; "1:3:2" also copies half as fast. Nothing when the text does
/// not say that.
std::optional<Straggler> straggler_named(std::string_view text);

}  // namespace paceline
