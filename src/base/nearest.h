// The known word that a misspelt one is closest to, for error messages.
#pragma once

#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

/// Returns the smallest number of insertions, deletions, substitutions and swaps of neighbours that
/// turn one word into the other (optimal string alignment; Damerau, CACM 7(3), 1964). Upper and
/// lower case are equal.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// Returns the candidate with the smallest edit distance, the first of equals; empty if there are
/// no candidates.
std::string nearest(std::string_view word, const std::vector<std::string_view>& candidates);

/// Does the same for any range of strings.
template <typename Range>
std::string nearest(std::string_view word, const Range& candidates) {
  const std::vector<std::string_view> views(std::begin(candidates), std::end(candidates));
  return nearest(word, views);
}

/// Returns "; did you mean 'x'?" for the end of a message; empty when no candidate resembles the
/// word.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& candidates);

template <typename Range>
std::string did_you_mean(std::string_view word, const Range& candidates) {
  const std::vector<std::string_view> views(std::begin(candidates), std::end(candidates));
  return did_you_mean(word, views);
}

}  // namespace paceline
