#include "launch/placement.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/printed.h"
#include "paceline/error.h"

namespace paceline {

namespace {

constexpr int kAnyNumber = 1 << 20;

}  // namespace

Placement spread_tasks(int hosts, int ps, int workers, std::vector<int> room) {
  room.resize(std::size_t(hosts), kAnyNumber);
  std::int64_t all = 0;
  for (const int one : room) all += one;
  if (all < workers) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the hosts have room for {}, and {} are to start",
                            counted(all, "worker"), workers));
  }
  Placement placement;
  for (int i = 0; i < ps; ++i) placement.ps.push_back(i % hosts);
  int host = hosts >= ps + workers ? ps : 0;
  for (int i = 0; i < workers; ++i, ++host) {
    while (room[std::size_t(host % hosts)] == 0) ++host;
    --room[std::size_t(host % hosts)];
    placement.workers.push_back(host % hosts);
  }
  return placement;
}

}  // namespace paceline
