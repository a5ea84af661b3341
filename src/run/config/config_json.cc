#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

#include "paceline/error.h"
#include "run/config/config_value.h"

namespace paceline {

namespace {

using Kind = ConfigValue::Kind;

constexpr std::size_t kDeepest = 32;

/// An iterator that reports how far the text was read, because the library's events carry no
/// positions.
struct Cursor {
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at = nullptr;
  const char** reached = nullptr;

  reference operator*() const { return *at; }
  Cursor& operator++() {
    *reached = ++at;
    return *this;
  }
  Cursor operator++(int) {
    const Cursor before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Cursor& other) const { return at == other.at; }
};

// Returns the part of the library's message behind the dash, as in "parse error at line 1, column
// 2: syntax error while parsing value - invalid literal; …".
std::string fault_of(const std::string& text) {
  const std::size_t dash = text.find(" - "), colon = text.find(": ");
  if (dash != text.npos) return text.substr(dash + 3);
  return colon == text.npos ? text : text.substr(colon + 2);
}

/// Builds the tree, event by event.
class JsonTree : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonTree(std::string_view text, const std::string& source)
      : text_(text), source_(source), reached_(text.data()), ended_(text.data()) {}

  Cursor begin() { return {text_.data(), &reached_}; }
  Cursor end() { return {text_.data() + text_.size(), &reached_}; }
  ConfigValue take() { return std::move(root_); }

  bool null() override { return scalar(Kind::kNull, "null"); }
  bool boolean(bool value) override { return scalar(Kind::kSwitch, value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override {
    return scalar(Kind::kNumber, std::to_string(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return scalar(Kind::kNumber, std::to_string(value));
  }
  bool number_float(number_float_t, const string_t& written) override {
    return scalar(Kind::kNumber, written);
  }
  bool string(string_t& value) override { return scalar(Kind::kText, value); }
  bool binary(binary_t&) override { return false; }  // not in JSON
  bool start_object(std::size_t) override { return open(Kind::kTable); }
  bool start_array(std::size_t) override { return open(Kind::kList); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    const char* const at = start_of_token();
    if (open_.back()->find(name) != nullptr) {
      refuse(at, fmt::format("'{}' is given twice", name));
    }
    key_ = name;
    key_at_ = at;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& error) override {
    const std::size_t last = std::min(position > 0 ? position - 1 : 0, text_.size());
    refuse(text_.data() + last, "no JSON: " + fault_of(error.what()));
  }

 private:
  // Returns the start of a token, behind the end of the previous token and separators. After a
  // number, the reader has already taken one separator.
  const char* start_of_token() {
    const char* const begin = std::exchange(ended_, reached_);
    const std::string_view rest(begin, std::size_t(reached_ - begin));
    const std::size_t skipped = rest.find_first_not_of(" \t\r\n,:");
    return begin + (skipped == rest.npos ? 0 : skipped);
  }

  [[noreturn]] void refuse(const char* at, std::string_view why) const {
    const auto [line, column] = position_of(at);
    throw Error(ErrorCode::kUsage, fmt::format("{}: {}", place_of(source_, line, column), why));
  }

  std::pair<int, int> position_of(const char* at) const {
    const std::string_view before(text_.data(), std::size_t(at - text_.data()));
    const std::size_t line_begin = before.rfind('\n') + 1;  // 0 on the first line
    return {int(std::ranges::count(before, '\n')) + 1, int(before.size() - line_begin) + 1};
  }

  ConfigValue& add(Kind kind) {
    const char* const at = start_of_token();
    const bool member = !open_.empty() && open_.back()->kind == Kind::kTable;
    const auto [line, column] = position_of(member ? key_at_ : at);
    ConfigValue& value = open_.empty() ? root_ : open_.back()->items.emplace_back();
    value.kind = kind;
    value.line = line;
    value.column = column;
    if (member) value.key = std::move(key_);
    return value;
  }
  bool scalar(Kind kind, std::string text) {
    add(kind).text = std::move(text);
    return true;
  }
  bool open(Kind kind) {
    ConfigValue& value = add(kind);
    if (open_.size() == kDeepest) refuse(ended_ - 1, "lists and tables are nested too deeply");
    // The pointer stays valid: the parent gets no further members until this one is closed.
    open_.push_back(&value);
    return true;
  }
  bool close() {
    ended_ = reached_;
    open_.pop_back();
    return true;
  }

  const std::string_view text_;
  const std::string& source_;
  const char* reached_;
  const char* ended_;  // where the last token ended
  ConfigValue root_;
  std::vector<ConfigValue*> open_;
  std::string key_;
  const char* key_at_ = nullptr;
};

}  // namespace

ConfigValue parse_json(std::string_view text, const std::string& source) {
  JsonTree tree(text, source);
  nlohmann::json::sax_parse(tree.begin(), tree.end(), &tree);
  return tree.take();
}

}  // namespace paceline
