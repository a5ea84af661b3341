// A folder of the test's own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/temporary_folder.h"

namespace paceline::testing {

class Folder : public TemporaryFolder {
 public:
  /// Writes a file of the folder, and returns its path.
  std::string write(const std::string& name, std::string_view content) const;
  std::string read(const std::string& name) const;
  /// Returns the names in the folder, in order; files in subfolders have their paths.
  std::vector<std::string> names() const;
};

/// The bytes of a safetensors file with this header and data.
std::string safetensors_bytes(const std::string& json, const std::string& data);

}  // namespace paceline::testing
