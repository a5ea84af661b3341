#include "cli/flags/placed_flags.h"

#include <fmt/format.h>

namespace paceline {

std::vector<GivenFlag> placed_flags(const std::string& launcher, const std::string& seen, int rank,
                                    const std::vector<std::string>& addresses, int ps) {
  std::string spec = ps > 0 ? "ps=" : "worker=";
  for (int i = 0; i < int(addresses.size()); ++i) {
    if (i > 0) spec += i == ps ? ";worker=" : ",";
    spec += addresses[std::size_t(i)];
  }
  const std::string task =
      rank < ps ? fmt::format("ps:{}", rank) : fmt::format("worker:{}", rank - ps);
  const std::string placed = fmt::format("{} ({})", launcher, seen);
  return {
      {"--cluster", {spec}, placed}, {"--task", {task}, placed}, {"--placed", {placed}, placed}};
}

}  // namespace paceline
