#include "cli/flags/path_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/testing/error_of.h"
#include "cli/flags/config_file.h"
#include "cli/flags/flags.h"
#include "paceline/program.h"

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

CommandLine line_of_a_run() { return {"trainer", "Trains.", "", run_flags()}; }

std::string home() {
  const char* const folder = std::getenv("HOME");
  return folder == nullptr ? "" : folder;
}

class PathFlags : public ::testing::Test {
 protected:
  PathFlags() { setenv("HOME", "/users/somebody", 1); }
  ~PathFlags() override { before_.empty() ? unsetenv("HOME") : setenv("HOME", before_.c_str(), 1); }
  const std::string before_ = std::getenv("HOME") == nullptr ? "" : home();
};

TEST_F(PathFlags, HaveTheUsersFolderInPlaceOfATilde) {
  EXPECT_EQ(parse(line_of_a_run(), {"--out=~/run"})->text("--out"), "/users/somebody/run");
  EXPECT_EQ(parse(line_of_a_run(), {"--report", "~"})->text("--report"), "/users/somebody");
  EXPECT_EQ(parse(line_of_a_run(), {"--out", "a~/b$"})->text("--out"), "a~/b$");
  const auto in_file =
      flags_of(parse_toml("out = \"~/run\"", "job.toml"), line_of_a_run(), "job.toml");
  EXPECT_THAT(in_file.front().values, ElementsAre("/users/somebody/run"));
}

TEST_F(PathFlags, OfAProgramToo) {
  const Setting<std::string> data = data_setting("");
  Settings settings({data});
  settings.set("data", "~/text");
  EXPECT_EQ(settings[data], "/users/somebody/text");
  EXPECT_THAT(error_of(ErrorCode::kUsage, [&] { settings.set("data", "$DATA/text"); }),
              HasSubstr("--set data $DATA/text: variables are not replaced"));
}

TEST_F(PathFlags, RefuseWhatOnlyAShellReplaces) {
  for (const char* path : {"$RUNS/1", "runs/${NAME}"}) {
    EXPECT_THAT(error_of(ErrorCode::kUsage,
                         [&] {
                           parse(line_of_a_run(), {"--out", path});
                         }),
                AllOf(HasSubstr(std::string("--out ") + path), HasSubstr("variables")));
  }
  EXPECT_THAT(error_of(ErrorCode::kUsage, [&] { parse(line_of_a_run(), {"--out=~other/run"}); }),
              HasSubstr("--out ~other/run: only ~ itself is replaced"));
  EXPECT_THAT(error_of(ErrorCode::kUsage,
                       [&] {
                         flags_of(parse_toml("\nout = \"~other/run\"", "job.toml"), line_of_a_run(),
                                  "job.toml");
                       }),
              AllOf(HasSubstr("job.toml, line 2"), HasSubstr("--out ~other/run")));
  unsetenv("HOME");
  EXPECT_THAT(error_of(ErrorCode::kUsage, [&] { parse(line_of_a_run(), {"--out=~/run"}); }),
              HasSubstr("$HOME, which is not set"));
}

}  // namespace
}  // namespace paceline
