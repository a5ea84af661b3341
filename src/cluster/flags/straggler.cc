#include "cluster/flags/straggler.h"

#include <charconv>

namespace paceline {

std::optional<Straggler> straggler_named(const std::string& text) {
  constexpr double kMostSlowness = 1e6;
  Straggler named;
  const char* const end = text.data() + text.size();
  const auto [colon, index] = std::from_chars(text.data(), end, named.worker);
  if (index != std::errc() || colon == end || *colon != ':') return std::nullopt;
  const auto [stop, status] = std::from_chars(colon + 1, end, named.times);
  const bool well = status == std::errc() && stop == end && named.worker >= 0;
  if (!well || !(named.times >= 1 && named.times <= kMostSlowness)) return std::nullopt;
  return named;
}

}  // namespace paceline
