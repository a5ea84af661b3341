// Output that fails nobody.
#pragma once

#include <cstdio>
#include <string_view>

namespace paceline {

/// Writes the text and flushes. A terminal that is gone, a closed pipe and a full disk are no
/// reason to end what a program does: the text is then lost.
inline void print_text(std::FILE* stream, std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
  std::clearerr(stream);
}

}  // namespace paceline
