#include "run/towers.h"

#include <fmt/format.h>

#include "kernels/device_kind.h"
#include "paceline/error.h"

namespace paceline {
namespace {

[[noreturn]] void refuse_towers(int towers, const std::string& why) {
  throw Error(ErrorCode::kUsage, fmt::format("--towers {}: {}", towers, why));
}

}  // namespace

void check_towers(const Cluster& cluster, int cores) {
  const int towers = cluster.towers;
  if (towers < 1 || towers > kMostTowers) {
    refuse_towers(towers, fmt::format("must be a whole number from 1 to {}", kMostTowers));
  }
  if (!device_kind(cluster.device.kind).shares_cores || towers == 1) return;
  if (towers > cores) {
    refuse_towers(towers, fmt::format("this machine has {} core{}, and each tower on cpu needs one "
                                      "of its own",
                                      cores, cores == 1 ? "" : "s"));
  }
  if (cluster.threads > 0 && towers > cluster.threads) {
    refuse_towers(towers, fmt::format("--threads {} are shared by the towers, and each needs one",
                                      cluster.threads));
  }
}

}  // namespace paceline
