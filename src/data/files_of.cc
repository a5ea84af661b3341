#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "paceline/data.h"
#include "paceline/error.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_in(const std::string& folder, std::string_view ending) {
  std::error_code error;
  std::vector<std::string> files;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    const std::string path = entry->path().string();
    if (path.ends_with(ending) && !entry->is_directory(ignored)) files.push_back(path);
  }
  if (error) {
    throw Error(ErrorCode::kNotFound,
                fmt::format("cannot list the folder {}: {}", folder, error.message()));
  }
  if (files.empty()) {
    throw Error(ErrorCode::kNotFound,
                fmt::format("the folder {} holds no file whose name ends in {}", folder, ending));
  }
  return files;
}

std::vector<std::string> files_like(const std::string& pattern) {
  glob_t found{};
  const int status = ::glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> files;
  for (std::size_t i = 0; i < found.gl_pathc; ++i) files.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  if (status == 0) return files;
  const bool is_pattern = pattern.find_first_of("*?[") != std::string::npos;
  throw Error(ErrorCode::kNotFound,
              (is_pattern ? "no file matches " : "there is no file or folder ") + pattern);
}

}  // namespace

std::vector<std::string> files_of(const std::string& path, std::string_view ending) {
  std::error_code ignored;
  std::vector<std::string> files;
  if (fs::is_directory(path, ignored)) {
    files = files_in(path, ending);
  } else if (fs::exists(path, ignored)) {
    files = {path};
  } else {
    files = files_like(path);
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace paceline
