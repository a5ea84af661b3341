// Waiting by looking.
#pragma once

#include <thread>

namespace paceline::bench {

/// Waits until `done()`. With more busy threads than cores it lets the others run now and then.
template <typename Done>
void spin_until(const Done& done) {
  constexpr int kLooks = 10'000;
  while (true) {
    for (int i = 0; i < kLooks; ++i) {
      if (done()) return;
    }
    std::this_thread::yield();
  }
}

}  // namespace paceline::bench
