// Text for workloads that need some, if the user names none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/temporary_folder.h"
#include "paceline/data.h"
#include "paceline/zoo_data.h"

namespace paceline::bench {

/// A folder with generated text, made when it is first needed.
class GeneratedText {
 public:
  explicit GeneratedText(std::int64_t words) : words_(words) {}
  const std::string& folder() {
    if (!folder_) {
      folder_.emplace();
      generate_corpus(folder_->path(), words_, 1);
    }
    return folder_->path();
  }

 private:
  const std::int64_t words_;
  std::optional<TemporaryFolder> folder_;
};

}  // namespace paceline::bench
