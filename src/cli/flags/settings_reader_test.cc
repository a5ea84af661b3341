#include "cli/flags/settings_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/error_of.h"
#include "cli/flags/flags.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using testing::Contains;
using testing::Eq;
using testing::HasSubstr;
using testing::Pair;

const Setting<std::int64_t> kBatchSize = batch_setting(128), kEpochs = epochs_setting(10);
const Setting<std::int64_t> kHidden = {
    .name = "hidden_units", .value = 64, .help = "Units", .least = 1, .most = 99};
const Setting<bool> kPlain = {
    .name = "plain", .value = false, .help = "Leave it out", .flag = true};

std::vector<AnySetting> own() { return {kBatchSize, kEpochs, kHidden, kPlain}; }

CommandLine line_with_settings() {
  return with_settings({"trainer", "Trains.", "Examples:", run_flags()}, own());
}

Settings settings_of(const std::vector<std::string>& words,
                     const std::vector<GivenFlag>& file = {}) {
  FlagValues values = parse(line_with_settings(), words).value();
  for (const GivenFlag& flag : file) values.add(flag);
  return read_settings(own(), values);
}

std::string refused(const std::vector<std::string>& words,
                    const std::vector<GivenFlag>& file = {}) {
  return error_of(ErrorCode::kUsage, [&] { settings_of(words, file); });
}

TEST(SettingsReader, TakesFlagsAndSet) {
  const Settings settings = settings_of({"--batch", "64", "--plain", "--set", "hidden_units=8"});
  EXPECT_EQ(settings[kBatchSize], 64);
  EXPECT_EQ(settings[kHidden], 8);
  EXPECT_TRUE(settings[kPlain]);
  EXPECT_FALSE(settings.given(kEpochs));
  EXPECT_EQ(settings_of({"--set", "batch=32"})[kBatchSize], 32);
}

TEST(SettingsReader, NamesWhatWasTyped) {
  EXPECT_THAT(refused({"--batch", "0"}), Eq("--batch 0: must be a whole number from 1 on"));
  EXPECT_THAT(refused({"--set", "hidden_units=100"}),
              Eq("--set hidden_units=100: must be a whole number from 1 to 99"));
  EXPECT_THAT(refused({"--set", "hidden_units"}), HasSubstr("must be name=value"));
  EXPECT_THAT(refused({"--set", "batch=1", "--batch", "2"}), HasSubstr("cannot both be given"));
}

TEST(SettingsReader, EpochsExcludeOtherEnds) {
  EXPECT_THAT(refused({"--epochs", "2", "--steps", "3"}),
              HasSubstr("--epochs and --steps cannot both be given"));
  EXPECT_EQ(settings_of({"--epochs", "2"})[kEpochs], 2);
}

TEST(SettingsReader, TheCommandLineCountsBeforeAFile) {
  const std::vector<GivenFlag> set = {{"--set", {"batch=1"}, "job.toml, line 1, column 1"}};
  const std::vector<GivenFlag> flag = {{"--batch", {"1"}, "job.toml, line 1, column 1"}};
  EXPECT_EQ(settings_of({"--batch", "2"}, set)[kBatchSize], 2);
  EXPECT_EQ(settings_of({"--set", "batch=2"}, flag)[kBatchSize], 2);
}

TEST(SettingsReader, HelpShowsDefaultsAndRanges) {
  const auto flags = own_flags(own());
  ASSERT_EQ(flags.size(), 3U);
  EXPECT_EQ(flags[0].help,
            "The number of examples in a step of one worker (default 128; from 1 on)");
  EXPECT_EQ(flags[2].placeholder, "");
  EXPECT_THAT(line_with_settings().examples, HasSubstr("Units (default 64; from 1 to 99)\n"));
}

TEST(SettingsReader, ASettingHidesNoFlagOfEveryProgram) {
  const std::vector<AnySetting> hides = {{.name = "seed", .value = 1, .flag = true}};
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument,
                       [&] {
                         with_settings({"trainer", "", "", run_flags()}, hides);
                       }),
              HasSubstr("the setting 'seed' would hide the flag --seed"));
}

TEST(SettingsReader, TheReportListsFlagsAndEverySetting) {
  const FlagValues values =
      parse(line_with_settings(), {"--seed", "3", "--batch", "64", "--set", "hidden_units=8"})
          .value();
  const auto list = flags_and_settings(values, read_settings(own(), values));
  EXPECT_THAT(list, Contains(Pair("--seed", "3")));
  EXPECT_THAT(list, Contains(Pair("batch", "64")));
  EXPECT_THAT(list, Contains(Pair("hidden_units", "8")));
  EXPECT_THAT(list, Contains(Pair("epochs", "10")));
  EXPECT_EQ(list.size(), 5U);
}

}  // namespace
}  // namespace paceline
