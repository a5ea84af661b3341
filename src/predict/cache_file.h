// A file in the cache folder that keeps measurements of this machine.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace paceline {

/// A value of JSON, and the processor that it was measured on. A file that cannot be read, is
/// damaged or is of another processor counts as empty, and one that cannot be written stays as it
/// is: what it would hold is then measured again.
class CacheFile {
 public:
  /// Nothing is kept when the path is empty. `name` is that of the value in the file.
  CacheFile(std::string path, std::string name) : path_(std::move(path)), name_(std::move(name)) {}

  bool keeps() const { return !path_.empty(); }
  /// Returns null for a file that counts as empty.
  nlohmann::json read() const;
  /// Writes what `to` makes of the value, while no other process does. Makes the folder when it is
  /// not there.
  void change(const std::function<nlohmann::json(nlohmann::json)>& to) const;

 private:
  void write(const nlohmann::json& value) const;

  const std::string path_, name_;
};

}  // namespace paceline
