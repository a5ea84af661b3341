// A JSON or TOML text as a tree whose values know their places in the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

struct ConfigValue {
  enum class Kind : std::uint8_t { kNull, kSwitch, kNumber, kText, kDate, kList, kTable };
  Kind kind = Kind::kNull;
  std::string text;                // "true", "0.5", the text itself; empty of lists and tables
  std::string key;                 // of a table's member
  std::vector<ConfigValue> items;  // of a list, in order; members of a table
  int line = 1, column = 1;        // from 1 on; of a table's member: where its key begins

  /// The table's member of that name; null when there is none or when this is no table.
  const ConfigValue* find(std::string_view name) const;
};

/// A place for errors: "job.toml, line 3, column 5".
std::string place_of(std::string_view source, int line, int column);

/// `source` is the name of the text in errors. Both throw kUsage that begins with the place, when
/// the text is no JSON or TOML, when a key is given twice, and when lists and tables are more than
/// 32 deep.
ConfigValue parse_json(std::string_view text, const std::string& source);
ConfigValue parse_toml(std::string_view text, const std::string& source);

}  // namespace paceline
