#include "base/cache_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

namespace paceline {
namespace {

/// Sets a variable of the environment while it lives.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~Environment() { set(before_ ? before_->c_str() : nullptr); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  void set(const char* value) const {
    if (value != nullptr) {
      setenv(name_, value, 1);
    } else {
      unsetenv(name_);
    }
  }
  const char* name_;
  std::optional<std::string> before_;
};

TEST(CacheFolder, IsWhereTheUserKeepsCaches) {
  const Environment home("HOME", "/ada"), cache("XDG_CACHE_HOME", "/caches");
  EXPECT_EQ(cache_folder(), "/caches/paceline");
}

TEST(CacheFolder, IsInTheHomeFolderOtherwise) {
  const Environment home("HOME", "/ada");
  const Environment none("XDG_CACHE_HOME", nullptr);
  EXPECT_EQ(cache_folder(), "/ada/.cache/paceline");
  const Environment relative("XDG_CACHE_HOME", "caches");
  EXPECT_EQ(cache_folder(), "/ada/.cache/paceline");
}

TEST(CacheFolder, IsEmptyWithoutAHome) {
  const Environment home("HOME", nullptr), cache("XDG_CACHE_HOME", nullptr);
  EXPECT_EQ(cache_folder(), "");
}

}  // namespace
}  // namespace paceline
