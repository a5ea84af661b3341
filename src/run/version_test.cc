#include "paceline/version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/clock.h"
#include "kernels/device.h"
#include "net/link.h"

namespace paceline {
namespace {

std::vector<std::string> words_of(const std::string& name) {
  std::istringstream text(version_text());
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with(name + ": ")) continue;
    std::istringstream rest(line.substr(name.size() + 2));
    return {std::istream_iterator<std::string>(rest), {}};
  }
  return {};
}

TEST(Version, SaysWhatABugReportNeeds) {
  for (const char* name : {"paceline", "commit", "compiler", "oneDNN", "kernels", "CPU",
                           "instruction sets", "devices", "links"}) {
    EXPECT_FALSE(words_of(name).empty()) << name;
  }
}

TEST(Version, NamesDevicesAndLinksThatExist) {
  RealClock clock;
  for (const std::string& name : words_of("devices")) {
    DeviceOptions options;
    options.kind = name.substr(0, name.find(':'));
    options.sim_step_ms = 1;
    EXPECT_NO_THROW(make_device(options, clock)) << name;
  }
  for (const std::string& name : words_of("links")) EXPECT_NO_THROW(make_link(name, {})) << name;
}

}  // namespace
}  // namespace paceline
