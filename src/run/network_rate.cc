#include "run/network_rate.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace paceline {

double network_gbps() {
  double most = 0;
  std::error_code ignored;
  for (const auto& card : std::filesystem::directory_iterator("/sys/class/net", ignored)) {
    // Skips cards without a device: bridges and pairs of virtual cards tell speeds that no cable
    // has.
    if (!std::filesystem::exists(card.path() / "device", ignored)) continue;
    std::ifstream file(card.path() / "speed");
    double megabits = 0;
    if (file >> megabits) most = std::max(most, megabits / 1000);
  }
  return most;
}

}  // namespace paceline
