#include "params/protocol/flag_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/plain_text.h"

namespace paceline {
namespace {

// Takes the first line, without its end, from the text.
std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

// Another worker may say anything.
std::string shown(std::string_view text) {
  constexpr std::size_t kMostShown = 64;
  return plain_text(text.substr(0, kMostShown));
}

std::string value_of(std::string_view line) {
  const std::size_t space = line.find(' ');
  return space == std::string_view::npos ? "not said" : shown(line.substr(space + 1));
}

}  // namespace

std::string flag_difference(const std::string& flags, const std::string& whose,
                            const std::string& other_flags, const std::string& other) {
  for (std::string_view ours = flags, theirs = other_flags; !ours.empty() || !theirs.empty();) {
    const std::string_view line = take_line(ours), its = take_line(theirs);
    if (line == its) continue;
    const std::string_view named = line.empty() ? its : line;
    return fmt::format("{}'s {} is {}, that of {} is {}", whose,
                       shown(named.substr(0, named.find(' '))), value_of(line), other,
                       value_of(its));
  }
  return "";
}

}  // namespace paceline
