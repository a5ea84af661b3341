#include "predict/cache_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "base/text_file.h"
#include "paceline/error.h"
#include "paceline/version.h"

namespace paceline {
namespace {

/// A lock that one process at a time holds, for the lifetime of this object. If there can be no
/// lock file, since some folders allow none, processes do not wait for each other.
class TurnLock {
 public:
  explicit TurnLock(const std::string& path)
      : file_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    while (file_ >= 0 && flock(file_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~TurnLock() {
    if (file_ >= 0) close(file_);
  }
  TurnLock(const TurnLock&) = delete;
  TurnLock& operator=(const TurnLock&) = delete;

 private:
  const int file_;
};

}  // namespace

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

void CacheFile::change(const std::function<nlohmann::json(nlohmann::json)>& to) const {
  if (!keeps()) return;
  std::error_code ignored;  // a failure shows when the file is written
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  const TurnLock lock(path_ + ".lock");
  write(to(read()));
}

void CacheFile::write(const nlohmann::json& value) const {
  try {
    const nlohmann::json object = {{"processor", processor_name()}, {name_, value}};
    const auto replace = nlohmann::json::error_handler_t::replace;
    write_text_file(name_, path_, object.dump(2, ' ', false, replace) + "\n");
  } catch (const Error&) {
    // The next run measures again.
  }
}

}  // namespace paceline
