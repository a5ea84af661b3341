// Hyper-parameters of a model: its defaults, changed by --set.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.h"

namespace paceline::models {

/// "did you mean …?" with the candidate of the least edit distance.
std::string nearest(std::string_view wanted, const std::vector<std::string>& candidates);

/// Values by name. Numbers are checked when they are asked for; errors name --set.
class Settings {
 public:
  /// Throws kUsage on a name in `set` that `parameters` does not have, with the nearest.
  Settings(std::string_view model, std::span<const HyperParameter> parameters,
           const std::map<std::string, std::string>& set);
  /// Another default, as --size gives; a value of --set stays.
  void set_default(const std::string& name, std::string value);
  /// As a flag of its own gives, if it was given.
  void set_default(const std::string& name, std::optional<std::int64_t> flag);
  /// Throws kUsage unless it is a whole number of at least `least`.
  std::int64_t whole(const std::string& name, std::int64_t least) const;
  /// Throws kUsage unless it is a number in [low, high].
  double number(const std::string& name, double low, double high) const;
  /// Throws kUsage unless it is 0 or 1.
  bool on(const std::string& name) const;

 private:
  std::map<std::string, std::string> values_;
  std::map<std::string, std::string> set_;
};

}  // namespace paceline::models
