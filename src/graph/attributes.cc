#include <fmt/format.h>

#include "base/nearest.h"
#include "paceline/error.h"
#include "paceline/graph.h"

namespace paceline {

const Attributes::Item& Attributes::find(const std::string& name) const {
  const auto item = items_.find(name);
  if (item != items_.end()) return item->second;
  std::vector<std::string_view> names;
  for (const auto& [known, value] : items_) names.emplace_back(known);
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("[attributes] '{}' is missing{}", name, did_you_mean(name, names)));
}

void Attributes::wrong_type(const std::string& name) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("[attributes] '{}' has another type than the one asked for", name));
}

}  // namespace paceline
