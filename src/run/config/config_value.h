// A JSON or TOML text as a tree of values that know their places in the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

struct ConfigValue {
  enum class Kind : std::uint8_t { kNull, kSwitch, kNumber, kText, kDate, kList, kTable };
  Kind kind = Kind::kNull;
  std::string text;                // "true", "0.5", the text itself; empty for lists and tables
  std::string key;                 // of a table's member
  std::vector<ConfigValue> items;  // the items of a list, in order, or the members of a table
  int line = 1, column = 1;        // both count from 1; for a table's member, where its key begins

  /// Returns the table's member of that name; null if there is none, or if this value is no table.
  const ConfigValue* find(std::string_view name) const;
};

/// Returns a place for errors: "job.toml, line 3, column 5".
std::string place_of(std::string_view source, int line, int column);

/// `source` is the name of the text in errors. Both functions throw kUsage, with a message that
/// begins with the place, if the text is no JSON or TOML, if a key is given twice, or if lists and
/// tables are nested more than 32 deep.
ConfigValue parse_json(std::string_view text, const std::string& source);
ConfigValue parse_toml(std::string_view text, const std::string& source);

}  // namespace paceline
