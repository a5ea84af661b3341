#include "cli/flags/path_flags.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace paceline {

bool names_path(const std::string& placeholder) {
  constexpr std::string_view kPaths[] = {"FILE", "DIR", "PATH"};  // also "FILE FILE", "PATH…"
  return std::ranges::any_of(kPaths, [&](auto path) { return placeholder.starts_with(path); });
}

namespace {

bool has_variable(const std::string& path) {
  for (std::size_t at = path.find('$'); at != path.npos; at = path.find('$', at + 1)) {
    const char next = path.c_str()[at + 1];
    if (std::isalpha(int(std::uint8_t(next))) != 0 || next == '_' || next == '{') return true;
  }
  return false;
}

}  // namespace

std::string expanded_path(const std::string& flag, const std::string& path) {
  if (has_variable(path)) {
    refuse_flag(flag, path, "variables are not replaced here: write the path itself");
  }
  if (!path.starts_with('~')) return path;
  const char* const home = std::getenv("HOME");
  if (path.size() > 1 && path[1] != '/') {
    refuse_flag(flag, path, "only ~ itself is replaced, by your own folder: write the path itself");
  }
  if (home == nullptr || *home == '\0') {
    refuse_flag(flag, path, "~ stands for $HOME, which is not set: write the path itself");
  }
  return home + path.substr(1);
}

}  // namespace paceline
