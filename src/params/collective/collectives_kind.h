// The engines of an all-reduce, and the traits by which other code tells them apart.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

struct CollectivesKind {
  std::string_view name;  // as --collectives takes it
  /// True: it reduces over the tasks' links, which may be encrypted; false: by MPI.
  bool over_links = false;
};

/// The first is the default.
constexpr CollectivesKind kCollectivesKinds[] = {{.name = "link", .over_links = true},
                                                 {.name = "mpi"}};

inline std::vector<std::string> collectives_names() {
  std::vector<std::string> names;
  for (const CollectivesKind& kind : kCollectivesKinds) names.emplace_back(kind.name);
  return names;
}

/// Returns the engine of that name; for an unknown name, the default engine.
inline const CollectivesKind& collectives_kind(std::string_view name) {
  const auto* const kind = std::ranges::find(kCollectivesKinds, name, &CollectivesKind::name);
  return kind == std::end(kCollectivesKinds) ? kCollectivesKinds[0] : *kind;
}

}  // namespace paceline
