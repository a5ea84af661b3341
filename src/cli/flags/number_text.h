// Numbers in the texts of flags.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <system_error>

namespace paceline {

/// Reads the whole text as a number of the type; empty if it is no number, or outside the type's
/// range.
template <typename Number>
std::optional<Number> number_of(const std::string& text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, number);
  if (status != std::errc() || stop != end) return std::nullopt;
  return number;
}

/// True if the text is a number above the type's range.
template <typename Number>
bool is_too_large(const std::string& text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, number);
  return status == std::errc::result_out_of_range && stop == end && !text.starts_with('-');
}

}  // namespace paceline
