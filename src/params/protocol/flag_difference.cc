#include "params/protocol/flag_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/plain_text.h"

namespace paceline {
namespace {

// The text comes from another worker, so it may be anything.
std::string shown(std::string_view text) {
  constexpr std::size_t kMostShown = 64;
  return plain_text(text.substr(0, kMostShown));
}

std::string_view name_in(std::string_view line) { return line.substr(0, line.find('\t')); }

std::string value_in(std::string_view line) {
  const std::size_t tab = line.find('\t');
  return tab == std::string_view::npos ? "missing" : shown(line.substr(tab + 1));
}

// Says what both workers have: `line` is the flag's line of the worker `whose`, `its` that of
// `other`. A line is empty if its worker has no such flag.
std::string sentence(std::string_view line, const std::string& whose, std::string_view its,
                     const std::string& other) {
  return fmt::format("{}'s {} is {}, that of {} is {}", whose,
                     shown(name_in(line.empty() ? its : line)), value_in(line), other,
                     value_in(its));
}

}  // namespace

std::string flag_difference(std::span<const std::string> flags, const std::string& whose,
                            std::span<const std::string> other_flags, const std::string& other) {
  const auto [ours, theirs] = std::ranges::mismatch(flags, other_flags);
  if (ours == flags.end() && theirs == other_flags.end()) return "";
  if (theirs == other_flags.end()) return sentence(*ours, whose, {}, other);
  if (ours == flags.end()) return sentence({}, whose, *theirs, other);
  const std::string_view name = name_in(*ours);
  if (name == name_in(*theirs)) return sentence(*ours, whose, *theirs, other);
  // The names differ here, so one worker has lines that the other lacks.
  const bool theirs_are_more = std::any_of(theirs, other_flags.end(),
                                           [&](const auto& line) { return name_in(line) == name; });
  return theirs_are_more ? sentence({}, whose, *theirs, other) : sentence(*ours, whose, {}, other);
}

}  // namespace paceline
