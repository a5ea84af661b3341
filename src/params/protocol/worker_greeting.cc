#include "params/protocol/worker_greeting.h"

#include <fmt/format.h>

#include "params/protocol/cluster_difference.h"
#include "params/protocol/flag_difference.h"

namespace paceline {

std::string greeting_refusal(const Hello& ours, const Hello& theirs) {
  if (theirs.version != ours.version) {
    return fmt::format("it speaks protocol version {}, and worker:{} version {}", theirs.version,
                       ours.index, ours.version);
  }
  if (theirs.cluster_id != ours.cluster_id) {
    const std::string difference = cluster_difference(ours.cluster_id, theirs.cluster_id);
    return fmt::format("it is of another cluster{}{}", difference.empty() ? "" : ": ", difference);
  }
  if (theirs.role != ours.role || theirs.index < 0 || theirs.index >= ours.workers) {
    return fmt::format("{}:{} is not in the cluster, which has {} workers", theirs.role,
                       theirs.index, ours.workers);
  }
  if (theirs.ps != ours.index) {
    return fmt::format("this is worker:{}, not worker:{}: the addresses of the workers differ",
                       ours.index, theirs.ps);
  }
  if (theirs.index == ours.index) {
    return fmt::format("{} is worker:{} already", ours.process, ours.index);
  }
  const std::string us = fmt::format("worker:{}", ours.index);
  const std::string them = fmt::format("worker:{}", theirs.index);
  if (std::string why = flag_difference(ours.flags, us, theirs.flags, them); !why.empty()) {
    return why;
  }
  if (theirs.fingerprint != ours.fingerprint) {
    return fmt::format(
        "its variables differ from those of worker:{}: all workers need the same model and flags",
        ours.index);
  }
  return "";
}

}  // namespace paceline
