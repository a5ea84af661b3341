#include "params/protocol/cluster_difference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "paceline/cluster.h"
#include "paceline/error.h"

namespace paceline {
namespace {

constexpr std::size_t kMostShown = 5;

std::optional<ClusterSpec> spec_of_id(const std::string& id) {
  try {
    return ClusterSpec::parse(id);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void add_differences(const char* role, const std::vector<std::string>& here,
                     const std::vector<std::string>& there, std::vector<std::string>& texts) {
  const std::string none = "none";
  for (std::size_t i = 0; i < std::max(here.size(), there.size()); ++i) {
    const std::string &ours = i < here.size() ? here[i] : none,
                      &theirs = i < there.size() ? there[i] : none;
    if (ours != theirs) {
      texts.push_back(fmt::format("{}:{} is {} here, {} there", role, i, ours, theirs));
    }
  }
}

}  // namespace

std::string cluster_difference(const std::string& here, const std::string& there) {
  const std::optional<ClusterSpec> ours = spec_of_id(here), theirs = spec_of_id(there);
  if (!ours || !theirs) return "";
  std::vector<std::string> texts;
  add_differences("ps", ours->ps, theirs->ps, texts);
  add_differences("worker", ours->workers, theirs->workers, texts);
  const std::size_t more = texts.size() - std::min(texts.size(), kMostShown);
  if (more > 0) texts.resize(kMostShown);
  return fmt::format("{}{}", fmt::join(texts, "; "),
                     more > 0 ? fmt::format("; {} more differ", more) : "");
}

}  // namespace paceline
