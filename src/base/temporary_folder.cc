#include "base/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "paceline/error.h"

namespace paceline {

TemporaryFolder::TemporaryFolder()
    : path_(std::filesystem::temp_directory_path() / "paceline-XXXXXX") {
  if (mkdtemp(path_.data()) == nullptr) {
    throw Error(ErrorCode::kUnavailable,
                "the folder " + path_ + " cannot be made: " + std::strerror(errno));
  }
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace paceline
