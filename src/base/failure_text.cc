#include "base/failure_text.h"

#include <filesystem>
#include <new>
#include <string_view>
#include <system_error>

namespace paceline {
namespace {

constexpr std::string_view kOfJson = "[json.exception.";

// Shortens a message such as "[json.exception.parse_error.101] parse error at line 2, column 5:
// syntax error while …".
std::string text_of_json_error(std::string_view what) {
  constexpr std::string_view kParse = "parse error ";
  if (what.find("number overflow") != what.npos) return "a number is too large";
  const std::size_t parse = what.find(kParse);
  if (parse == what.npos) return "the JSON has another form than expected";
  const std::string_view place = what.substr(parse + kParse.size());
  return "no JSON " + std::string(place.substr(0, place.find(':')));
}

std::string text_of_file_error(const std::filesystem::filesystem_error& error) {
  std::string text;
  for (const std::filesystem::path& path : {error.path1(), error.path2()}) {
    if (!path.empty()) text += (text.empty() ? "" : " and ") + path.string();
  }
  return (text.empty() ? "" : text + ": ") + error.code().message();
}

}  // namespace

std::string failure_text(const std::exception& exception) {
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&exception)) {
    return text_of_file_error(*file);
  }
  if (const auto* system = dynamic_cast<const std::system_error*>(&exception)) {
    return "the system refused: " + system->code().message();
  }
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr) {
    return "not enough memory for what was asked";
  }
  const std::string_view what = exception.what();
  return what.starts_with(kOfJson) ? text_of_json_error(what) : std::string(what);
}

}  // namespace paceline
