#include "base/text_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
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

// A pipe, a terminal, a device: no file whose place another could take.
bool is_a_way_out(const std::string& path) {
  std::error_code none;
  const auto status = std::filesystem::status(path, none);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
         !std::filesystem::is_directory(status);
}

std::string behind_links(const std::string& path) {
  std::error_code none;
  const std::filesystem::path file = std::filesystem::canonical(path, none);
  return none ? path : file.string();
}

}  // namespace

void write_text_file(std::string_view what, const std::string& path, std::string_view text) {
  int why = 0;
  if (is_a_way_out(path)) {
    if (write(path, text)) return;
    why = errno;
  } else {
    const std::string file = behind_links(path), unfinished = file + ".part";
    if (write(unfinished, text) && std::rename(unfinished.c_str(), file.c_str()) == 0) return;
    why = errno;
    std::remove(unfinished.c_str());
  }
  throw Error(ErrorCode::kUnavailable, fmt::format("{} {} cannot be written: {}", what, path,
                                                   std::generic_category().message(why)));
}

}  // namespace paceline
