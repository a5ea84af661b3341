// A file in the cache folder that keeps measurements of this machine.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace paceline {

/// A JSON value, and the processor that it was measured on. A file that cannot be read, is damaged
/// or is from another processor counts as empty. A file that cannot be written stays unchanged:
/// what it would hold is then measured again.
class CacheFile {
 public:
  /// Keeps nothing if the path is empty. `name` is the value's name in the file.
  CacheFile(std::string path, std::string name) : path_(std::move(path)), name_(std::move(name)) {}

  bool keeps() const { return !path_.empty(); }
  /// Returns null for a file that counts as empty.
  nlohmann::json read() const;
  /// Replaces the value by `to`(value), while no other process does so. Makes the folder if it does
  /// not exist.
  void change(const std::function<nlohmann::json(nlohmann::json)>& to) const;

 private:
  void write(const nlohmann::json& value) const;

  const std::string path_, name_;
};

}  // namespace paceline
