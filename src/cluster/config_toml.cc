// toml++ 3.3 only asserts that a header's key begins as a key does ("[=", "[[["): what it asserts
// is thrown here, in every build.
#undef NDEBUG
namespace paceline {
[[noreturn]] void throw_broken_toml();
}
#define TOML_ASSERT(condition) ((condition) ? void() : paceline::throw_broken_toml())

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>

#include "cluster/config_value.h"
#include "paceline/error.h"

namespace paceline {

namespace {

struct BrokenToml {};

using Kind = ConfigValue::Kind;

constexpr int kDeepestTable = 32;

[[noreturn]] void refuse_toml(const std::string& source, const toml::source_region& at,
                              std::string_view why) {
  throw Error(
      ErrorCode::kUsage,
      fmt::format("{}: {}", place_of(source, int(at.begin.line), int(at.begin.column)), why));
}

ConfigValue value_of(const toml::node& node, const std::string& source, int depth) {
  if (depth > kDeepestTable) {
    refuse_toml(source, node.source(), "lists and tables are nested too deep");
  }
  ConfigValue value;
  value.line = int(node.source().begin.line);
  value.column = int(node.source().begin.column);
  if (const toml::table* const table = node.as_table()) {
    value.kind = Kind::kTable;
    for (const auto& [key, member] : *table) {
      ConfigValue& added = value.items.emplace_back(value_of(member, source, depth + 1));
      added.key = key.str();
      added.line = int(key.source().begin.line);
      added.column = int(key.source().begin.column);
    }
  } else if (const toml::array* const list = node.as_array()) {
    value.kind = Kind::kList;
    for (const toml::node& item : *list) value.items.push_back(value_of(item, source, depth + 1));
  } else if (const auto text = node.value_exact<std::string>()) {
    value.kind = Kind::kText;
    value.text = *text;
  } else if (const auto on = node.value_exact<bool>()) {
    value.kind = Kind::kSwitch;
    value.text = *on ? "true" : "false";
  } else if (const auto whole = node.value_exact<std::int64_t>()) {
    value.kind = Kind::kNumber;
    value.text = std::to_string(*whole);
  } else if (const auto number = node.value_exact<double>()) {
    value.kind = Kind::kNumber;
    value.text = fmt::format("{}", *number);
  } else {
    value.kind = Kind::kDate;
  }
  return value;
}

// The first line that begins with brackets and then no key; the last line when there is none.
toml::source_region odd_header(std::string_view text) {
  constexpr std::string_view kSpaces = " \t";
  toml::source_region at;
  at.begin.line = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++at.begin.line;
    std::size_t column = std::min(line.find_first_not_of(kSpaces), line.size());
    at.begin.column = toml::source_index(column + 1);
    for (int bracket = 0; bracket < 2 && column < line.size() && line[column] == '['; ++bracket) {
      column = std::min(line.find_first_not_of(kSpaces, column + 1), line.size());
      if (column == line.size()) break;
      const char c = line[column];
      const bool key = std::isalnum(int(std::uint8_t(c))) != 0 || c == '_' || c == '-';
      if (!key && c != '"' && c != '\'' && !(c == '[' && bracket == 0)) return at;
    }
  }
  return at;
}

}  // namespace

void throw_broken_toml() { throw BrokenToml(); }

ConfigValue parse_toml(std::string_view text, const std::string& source) {
  try {
    return value_of(toml::parse(text), source, 0);
  } catch (const toml::parse_error& error) {
    refuse_toml(source, error.source(), error.description());
  } catch (const BrokenToml&) {
    refuse_toml(source, odd_header(text), "a table's name is missing or is no key");
  }
}

}  // namespace paceline
