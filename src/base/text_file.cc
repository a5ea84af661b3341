#include "base/text_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "paceline/error.h"

namespace paceline {
namespace {

bool write(const std::string& path, std::string_view text) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return false;
  bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fflush(file) != 0) written = false;
  const int why = errno;  // closing may forget it
  const bool closed = std::fclose(file) == 0;
  if (!written) errno = why;
  return written && closed;
}

}  // namespace

void write_text_file(std::string_view what, const std::string& path, std::string_view text) {
  const std::string unfinished = path + ".part";
  if (write(unfinished, text) && std::rename(unfinished.c_str(), path.c_str()) == 0) return;
  const int why = errno;
  std::remove(unfinished.c_str());
  throw Error(ErrorCode::kUnavailable, fmt::format("{} {} cannot be written: {}", what, path,
                                                   std::generic_category().message(why)));
}

}  // namespace paceline
