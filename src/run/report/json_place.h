// A value of a report that a file or another task has supplied, and its place in that report.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace paceline {

/// Reads values from foreign sources. A function that does not find the kind of value that it reads
/// throws kDataLoss with the place of the value: "tasks[2].use.cores is no number". Texts and names
/// are made fit to be printed (base/plain_text.h).
class JsonPlace {
 public:
  /// The document must outlive its places.
  explicit JsonPlace(const nlohmann::ordered_json& document) : JsonPlace(document, document) {}

  /// Returns the member of this name, which must exist.
  JsonPlace at(const std::string& name) const;
  /// Returns the member of this name; empty if there is none, or if it is null.
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
  /// Returns the number; empty if the value is null, which means that it was not measured.
  std::optional<double> measured() const;

 private:
  JsonPlace(const nlohmann::ordered_json& document, const nlohmann::ordered_json& value)
      : document_(&document), value_(&value) {}
  [[noreturn]] void refuse(const std::string& why) const;

  const nlohmann::ordered_json *document_, *value_;
};

}  // namespace paceline
