#include "cli/flags/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/testing/error_of.h"
#include "cli/flags/flags.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

CommandLine trainer_line() {
  CommandLine line{"trainer", "Trains.", "", run_flags()};
  const std::vector<Flag> cluster = cluster_flags();
  line.flags.insert(line.flags.end(), cluster.begin(), cluster.end());
  line.flags.push_back({"--set", "NAME=VALUE", "", "Model", true});
  return line;
}

std::vector<GivenFlag> flags_in(const std::string& toml) {
  return flags_of(parse_toml(toml, "job.toml"), trainer_line(), "job.toml");
}

std::vector<std::string> values(const std::vector<GivenFlag>& flags, const std::string& name) {
  for (const GivenFlag& flag : flags) {
    if (flag.name == name) return flag.values;
  }
  return {"(not given)"};
}

std::string refusal_of_toml(const std::string& toml) {
  return error_of(ErrorCode::kUsage, [&] { flags_in(toml); });
}

TEST(ConfigFile, KeysAreFlags) {
  const std::vector<GivenFlag> flags = flags_in(R"(steps = 30
quiet = true
existing-servers = false
join_timeout = 2.5
worker-hosts = ["a:1", "b:2"]
cluster = { ps = ["a:1"], worker = ["b:1", "c:1"] }
[set]
learning_rate = 1e-4
hidden = 32
)");
  EXPECT_THAT(values(flags, "--steps"), ElementsAre("30"));
  EXPECT_THAT(values(flags, "--quiet"), ElementsAre(""));
  EXPECT_THAT(values(flags, "--existing-servers"), ElementsAre("(not given)"));
  EXPECT_THAT(values(flags, "--join-timeout"), ElementsAre("2.5"));
  EXPECT_THAT(values(flags, "--worker-hosts"), ElementsAre("a:1,b:2"));
  EXPECT_THAT(values(flags, "--cluster"), ElementsAre("ps=a:1;worker=b:1,c:1"));
  EXPECT_THAT(values(flags, "--set"),
              testing::UnorderedElementsAre("learning_rate=0.0001", "hidden=32"));
}

TEST(ConfigFile, EveryFlagCanBeGiven) {
  for (const Flag& flag : trainer_line().flags) {
    if (flag.name == "--config" || is_internal(flag.name)) continue;
    const std::string value = flag.placeholder.empty() ? " = true" : " = 'x'";
    EXPECT_EQ(flags_in(flag.name.substr(2) + value).size(), 1U) << flag.name;
  }
}

TEST(ConfigFile, WhatIsWrongIsSaidWithItsPlace) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\nstesp = 3", "job.toml, line 2, column 1: unknown key 'stesp'; did you mean 'steps'?"},
      {"launched = true", "job.toml, line 1, column 1: unknown key 'launched'"},
      {"config = 'x'", "job.toml, line 1, column 1: unknown key 'config'"},
      {"quiet = 1", "job.toml, line 1, column 1: 'quiet' must be true or false"},
      {"steps = true", "job.toml, line 1, column 1: 'steps' must be a string or a number"},
      {"steps = {}", "job.toml, line 1, column 1: 'steps' must be a string or a number"},
      {"steps = 2020-01-01", "job.toml, line 1, column 1: 'steps' must be a string or a number"},
      {"worker-hosts = ['a:1',\n true]", "job.toml, line 2, column 2: 'worker-hosts' must be"},
      {"join-timeout = 3\njoin_timeout = 4", "job.toml, line 2, column 1: --join-timeout is given"},
  };
  for (const auto& [toml, message] : cases) EXPECT_THAT(refusal_of_toml(toml), StartsWith(message));
  EXPECT_THROW(flags_of(parse_json("[1]", "x"), trainer_line(), "x"), Error);
}

TEST(ConfigFile, TheNameSaysTheFormat) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("config_file_test_" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder / name) << text;
    return (folder / name).string();
  };
  const auto refused = [](const std::string& path) -> std::string {
    try {
      read_config_file(path, trainer_line());
    } catch (const Error& error) {
      return error.what();
    }
    return "(accepted)";
  };
  EXPECT_EQ(read_config_file(write("a.json", R"({"steps": 3})"), trainer_line()).size(), 1U);
  EXPECT_EQ(read_config_file(write("a.toml", "steps = 3"), trainer_line()).size(), 1U);
  EXPECT_THAT(refused(write("b.json", "{\n\"steps\": 3,}")),
              HasSubstr("b.json, line 2, column 12: "));
  EXPECT_THAT(refused(write("a.yaml", "steps: 3")), HasSubstr("must end in .json or .toml"));
  EXPECT_THAT(refused(write("big.toml", std::string(1 << 21, '\n'))), HasSubstr("larger than"));
  EXPECT_THAT(refused((folder / "none.toml").string()), HasSubstr("No such file"));
  std::filesystem::create_directory(folder / "d.toml");
  EXPECT_THAT(refused((folder / "d.toml").string()), HasSubstr("it is a folder"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace paceline
