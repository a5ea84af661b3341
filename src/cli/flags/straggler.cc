#include "cli/flags/straggler.h"

#include <charconv>

namespace paceline {
namespace {

// Takes a number off the front of the text; returns false if the text does not begin with one.
template <typename Number>
bool take_number(std::string_view& text, Number& number) {
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc()) return false;
  text.remove_prefix(std::size_t(end - text.data()));
  return true;
}

// Takes ":K" off the front: how many times as long something takes.
bool take_times(std::string_view& text, double& times) {
  constexpr double kMostSlowness = 1e6;
  if (!text.starts_with(':')) return false;
  text.remove_prefix(1);
  return take_number(text, times) && times >= 1 && times <= kMostSlowness;
}

}  // namespace

std::optional<Straggler> straggler_named(std::string_view text) {
  Straggler named;
  const bool begins = take_number(text, named.worker) && take_times(text, named.times);
  if (!begins || named.worker < 0) return std::nullopt;
  if (!text.empty() && !take_times(text, named.copy_times)) return std::nullopt;
  if (!text.empty()) return std::nullopt;
  return named;
}

}  // namespace paceline
