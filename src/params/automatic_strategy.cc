#include "params/automatic_strategy.h"

#include <set>
#include <string>

#include "params/strategies.h"

namespace paceline {

std::string_view automatic_strategy(const Cluster& cluster) {
  std::set<std::string> hosts;
  for (const auto* tasks : {&cluster.spec.ps, &cluster.spec.workers}) {
    for (const std::string& address : *tasks) hosts.insert(address.substr(0, address.rfind(':')));
  }
  if (cluster.workers() > 1 && hosts.size() > 1) return "local";
  return default_strategy(kind_of(cluster)).name;
}

}  // namespace paceline
