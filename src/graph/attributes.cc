#include <fmt/format.h>

#include "base/nearest.h"
#include "paceline/error.h"
#include "paceline/graph.h"

namespace paceline {

void Attributes::set(const std::string& name, Item item) {
  if (items_.use_count() != 1) items_ = std::make_shared<Items>(items());
  (*items_)[name] = std::move(item);
}

const std::map<std::string, Attributes::Item>& Attributes::items() const {
  static const Items none;
  return items_ == nullptr ? none : *items_;
}

const Attributes::Item& Attributes::find(const std::string& name) const {
  const auto item = items().find(name);
  if (item != items().end()) return item->second;
  std::vector<std::string_view> names;
  for (const auto& [known, value] : items()) names.emplace_back(known);
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("[attributes] '{}' is missing{}", name, did_you_mean(name, names)));
}

void Attributes::wrong_type(const std::string& name) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("[attributes] '{}' has another type than the one asked for", name));
}

}  // namespace paceline
