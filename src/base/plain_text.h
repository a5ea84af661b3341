// Text of another program, made fit to be printed.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

/// Returns the text with '?' in place of control characters (of ASCII, and C1 in UTF-8), except
/// those in `kept`, so that it stays on its line and sends a terminal no commands.
inline std::string plain_text(std::string_view text, std::string_view kept = {}) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0u;
    const bool c1 = byte == 0xc2 && next >= 0x80 && next < 0xa0;
    if (c1) ++i;
    const bool control = c1 || byte < 0x20 || byte == 0x7f;
    plain += control && kept.find(text[i]) == kept.npos ? '?' : text[i];
  }
  return plain;
}

/// Makes a text of several lines plain; newlines and tabs stay.
inline std::string plain_lines(std::string_view text) { return plain_text(text, "\n\t"); }

}  // namespace paceline
