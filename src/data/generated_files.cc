#include "data/generated_files.h"

#include <filesystem>
#include <system_error>

#include "paceline/error.h"

namespace paceline {

void make_folder_for(const std::string& folder, std::span<const char* const> files) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) {
    throw Error(ErrorCode::kNotFound, "cannot make folder " + folder + ": " + failed.message());
  }
  for (const char* name : files) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    std::error_code unseen;  // a folder that may not be looked at cannot be written to either
    if (!std::filesystem::exists(path, unseen)) continue;
    throw Error(ErrorCode::kFailedPrecondition,
                path.string() +
                    " is there already, and is not replaced: remove "
                    "it, or name another folder");
  }
}

}  // namespace paceline
