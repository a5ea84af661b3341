#include "data/generated_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "base/grouped_digits.h"
#include "paceline/error.h"

namespace paceline {
namespace {

void check_room(const std::string& folder, double bytes) {
  std::error_code failed;
  const std::filesystem::space_info space = std::filesystem::space(folder, failed);
  if (failed || double(space.available) >= bytes) return;
  constexpr double kMega = 1e6;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("takes {} MB, and {} has room for {} MB",
                          grouped_digits(std::int64_t(bytes / kMega)), folder,
                          grouped_digits(std::int64_t(double(space.available) / kMega))));
}

}  // namespace

void make_folder_for(const std::string& folder, std::span<const char* const> files,
                     std::int64_t records, std::int64_t bytes_each) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) {
    throw Error(ErrorCode::kNotFound, "cannot make folder " + folder + ": " + failed.message());
  }
  for (const char* name : files) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    // This error is ignored, since a folder that cannot be looked at cannot be written to either.
    std::error_code unseen;
    if (!std::filesystem::exists(path, unseen)) continue;
    throw Error(ErrorCode::kFailedPrecondition,
                path.string() +
                    " is there already, and is not replaced: remove "
                    "it, or name another folder");
  }
  check_room(folder, double(records) * double(bytes_each));
}

}  // namespace paceline
