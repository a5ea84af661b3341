#include "run/config/config_value.h"

#include <fmt/format.h>

#include <algorithm>

namespace paceline {

const ConfigValue* ConfigValue::find(std::string_view name) const {
  if (kind != Kind::kTable) return nullptr;
  const auto at = std::ranges::find(items, name, &ConfigValue::key);
  return at == items.end() ? nullptr : &*at;
}

std::string place_of(std::string_view source, int line, int column) {
  return fmt::format("{}, line {}, column {}", source, line, column);
}

}  // namespace paceline
