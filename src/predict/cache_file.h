// A file in the cache folder that keeps measurements of this machine.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace paceline {

/// A JSON value, and the processor on which it was measured. A file that cannot be read, is damaged
/// or is from another processor counts as empty. If a file cannot be written, nothing is kept, and
/// later runs measure again.
class CacheFile {
 public:
  /// Keeps nothing if the path is empty. `name` is the value's name in the file.
  CacheFile(std::string path, std::string name) : path_(std::move(path)), name_(std::move(name)) {}

  bool keeps() const { return !path_.empty(); }
  /// Returns null for a file that counts as empty.
  nlohmann::json read() const;
  /// Replaces the value by `to`(value), while no other process changes it. Makes the folder if it
  /// does not exist.
  void change(const std::function<nlohmann::json(nlohmann::json)>& to) const;

 private:
  void write(const nlohmann::json& value) const;

  const std::string path_, name_;
};

}  // namespace paceline
