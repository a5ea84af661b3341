// The engines of an all-reduce, and their traits, by which all other code asks about an engine.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

struct CollectivesKind {
  std::string_view name;    // as --collectives takes it
  bool over_links = false;  // between the tasks, which may be encrypted; otherwise MPI
};

/// The first is the default.
constexpr CollectivesKind kCollectivesKinds[] = {{.name = "link", .over_links = true},
                                                 {.name = "mpi"}};

inline std::vector<std::string> collectives_names() {
  std::vector<std::string> names;
  for (const CollectivesKind& kind : kCollectivesKinds) names.emplace_back(kind.name);
  return names;
}

/// Returns the default for an unknown name.
inline const CollectivesKind& collectives_kind(std::string_view name) {
  const auto* const kind = std::ranges::find(kCollectivesKinds, name, &CollectivesKind::name);
  return kind == std::end(kCollectivesKinds) ? kCollectivesKinds[0] : *kind;
}

}  // namespace paceline
