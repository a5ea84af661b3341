#include "predict/cache_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "base/text_file.h"
#include "paceline/error.h"
#include "paceline/version.h"

namespace paceline {

nlohmann::json CacheFile::read() const {
  using Json = nlohmann::json;
  if (!keeps()) return {};
  std::ifstream file(path_, std::ios::binary);
  const Json object =
      Json::parse(std::string(std::istreambuf_iterator<char>(file), {}), nullptr, false);
  const bool known = object.is_object() &&
                     object.value("processor", Json()) == Json(processor_name()) &&
                     object.contains(name_);
  return known ? object[name_] : Json();
}

void CacheFile::write(const nlohmann::json& value) const {
  if (!keeps()) return;
  std::error_code ignored;  // what fails is seen when the file is written
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  try {
    const nlohmann::json object = {{"processor", processor_name()}, {name_, value}};
    const auto replace = nlohmann::json::error_handler_t::replace;
    write_text_file(name_, path_, object.dump(2, ' ', false, replace) + "\n");
  } catch (const Error&) {
    // It is measured again next time.
  }
}

}  // namespace paceline
