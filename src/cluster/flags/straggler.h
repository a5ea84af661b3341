// The worker that --sim-straggler makes slower than the others.
#pragma once

#include <optional>
#include <string>

namespace paceline {

struct Straggler {
  int worker = 0;
  double times = 1;  // as long as those of the others are its steps
};

/// "1:3" is worker 1, 3 times as slow. Nothing when the text does not say that.
std::optional<Straggler> straggler_named(const std::string& text);

}  // namespace paceline
