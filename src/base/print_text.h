// Output that fails nobody.
#pragma once

#include <cstdio>
#include <string_view>

namespace paceline {

/// Writes the text and flushes. If the terminal is gone, the pipe closed or the disk full, the text
/// is lost, and the program goes on.
inline void print_text(std::FILE* stream, std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
  std::clearerr(stream);
}

}  // namespace paceline
