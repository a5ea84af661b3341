#include "base/failure_text.h"

#include <filesystem>
#include <new>
#include <string_view>
#include <system_error>

namespace paceline {
namespace {

constexpr std::string_view kJsonNumber = "[json.exception.";

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
  const std::size_t end = what.starts_with(kJsonNumber) ? what.find("] ") : what.npos;
  return std::string(end == what.npos ? what : what.substr(end + 2));
}

}  // namespace paceline
