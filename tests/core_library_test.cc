// Tests that the library for users' own programs contains nothing of the layers above it: no flags,
// no HTTP server, no simulator, no explanations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

#include "tests/examples.h"
#include "tests/process.h"

namespace paceline::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::chrono::seconds kListTime(60);

std::string archive(const std::string& name) {
  return std::string(PACELINE_BUILD) + "/libpaceline_" + name + ".a";
}

// Returns the symbols of an archive that nm marks with one of these letters; all symbols if no
// letters are given.
std::set<std::string> symbols(const std::string& path, const std::string& letters = "") {
  const TemporaryFolder folder;
  const std::string list = folder.path("symbols");
  output_of({"sh", "-c", "nm -C '" + path + "' > '" + list + "'"}, kListTime);
  std::set<std::string> found;
  std::ifstream lines(list);
  for (std::string line; std::getline(lines, line);) {
    // nm prints the letter after an address of 16 digits, or after as many spaces
    constexpr std::size_t kLetter = 17;
    if (line.size() <= kLetter + 2 || line[kLetter + 1] != ' ') continue;
    if (letters.empty() || letters.find(line[kLetter]) != letters.npos) {
      found.insert(line.substr(kLetter + 2));
    }
  }
  return found;
}

TEST(CoreLibrary, HasNothingOfTheRoomsOverIt) {
  const std::set<std::string> core = symbols(archive("core"));
  EXPECT_TRUE(core.contains("paceline::Session::started() const"));
  std::istringstream rooms(PACELINE_ROOMS_OVER_CORE);
  std::set<std::string> over;
  for (std::string room; std::getline(rooms, room, ',');) {
    const std::set<std::string> defined = symbols(archive(room), "TDBRG");
    EXPECT_THAT(defined, Not(IsEmpty())) << room;
    over.insert(defined.begin(), defined.end());
  }
  EXPECT_TRUE(over.contains("paceline::watch_job(paceline::DashboardOptions const&)"));
  for (const std::string& symbol : core) {
    EXPECT_FALSE(over.contains(symbol)) << symbol;
    for (const char* const foreign : {"CLI::", "paceline::Http", "paceline::Prediction"}) {
      EXPECT_EQ(symbol.find(foreign), symbol.npos) << symbol;
    }
  }
}

TEST(CoreLibrary, TrainsAProgramWithoutTheOtherOne) {
  if (sanitized()) GTEST_SKIP() << "the installed library would need the sanitizer's flags";
  const TemporaryFolder folder;
  const std::string program = built_example("core_only", folder);
  std::ifstream build(folder.path("build") + "/build.ninja");
  const std::string commands(std::istreambuf_iterator<char>(build), {});
  EXPECT_THAT(commands, HasSubstr("libpaceline_core.a"));
  EXPECT_EQ(commands.find("libpaceline.a"), commands.npos);
  EXPECT_THAT(output_of({program}, kRunTime),
              AllOf(HasSubstr("step 2000: loss "), HasSubstr("report: "),
                    HasSubstr("trained 2000 steps to loss ")));
}

}  // namespace
}  // namespace paceline::testing
