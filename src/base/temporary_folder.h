// A folder that is removed with its object.
#pragma once

#include <string>

namespace paceline {

/// An empty folder among the system's temporary files.
class TemporaryFolder {
 public:
  /// Throws kUnavailable.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace paceline
