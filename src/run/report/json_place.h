// A value of a report from a file or another task, and its place there.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace paceline {

/// Reads values from foreign sources. All functions throw kDataLoss and name the place:
/// "tasks[2].use.cores is no number". Texts and names are made fit to be printed
/// (base/plain_text.h).
class JsonPlace {
 public:
  /// The document must outlive its places.
  explicit JsonPlace(const nlohmann::ordered_json& document) : JsonPlace(document, document) {}

  /// The member of this name, which must be there.
  JsonPlace at(const std::string& name) const;
  /// Empty when there is no such member, or when it is null.
  std::optional<JsonPlace> find(const std::string& name) const;
  std::vector<JsonPlace> items() const;
  std::vector<std::pair<std::string, JsonPlace>> members() const;
  bool is_list() const;
  bool is_object() const;

  std::string text() const;
  double number() const;
  bool is_true() const;
  std::int64_t whole_number() const;
  /// A count that fits an int.
  int count() const;
  /// Empty when the value is null, which means that it was not measured.
  std::optional<double> measured() const;

 private:
  JsonPlace(const nlohmann::ordered_json& document, const nlohmann::ordered_json& value)
      : document_(&document), value_(&value) {}
  [[noreturn]] void refuse(const std::string& why) const;

  const nlohmann::ordered_json *document_, *value_;
};

}  // namespace paceline
