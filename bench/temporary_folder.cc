#include "bench/temporary_folder.h"

#include <cstdlib>
#include <filesystem>

#include "paceline/error.h"

namespace paceline::bench {

TemporaryFolder::TemporaryFolder()
    : path_(std::filesystem::temp_directory_path() / "paceline-bench-XXXXXX") {
  if (mkdtemp(path_.data()) == nullptr) {
    throw Error(ErrorCode::kUnavailable, "[bench] cannot make the folder " + path_);
  }
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace paceline::bench
