#include "paceline/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <type_traits>

#include "base/testing/error_of.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using testing::ElementsAre;
using testing::Eq;
using testing::HasSubstr;
using testing::Pair;

const Setting<std::int64_t> kBatch = batch_setting(128);
const Setting<double> kRate = {.name = "rate", .value = 0.5, .least = 0, .most = 1};
const Setting<bool> kSpin = {.name = "spin", .value = true};
const Setting<std::string> kSize = {
    .name = "size", .value = "small", .choices = {"small", "large"}, .flag = true};
const Setting<std::string> kNote = {.name = "note", .value = ""};

std::vector<AnySetting> some() { return {kBatch, kRate, kSpin, kSize, kNote}; }

TEST(Settings, HaveTheirDefaultsUntilTheyAreSet) {
  Settings settings(some());
  EXPECT_EQ(settings[kBatch], 128);
  EXPECT_EQ(settings[kRate], 0.5);
  EXPECT_TRUE(settings[kSpin]);
  EXPECT_EQ(settings[kSize], "small");
  EXPECT_FALSE(settings.given(kBatch));
  settings.set("batch", "64");
  settings.set("rate", "1");
  settings.set("spin", "false");
  settings.set("note", "a=b");
  EXPECT_EQ(settings[kBatch], 64);
  EXPECT_EQ(settings[kRate], 1);
  EXPECT_FALSE(settings[kSpin]);
  EXPECT_EQ(settings[kNote], "a=b");
  EXPECT_TRUE(settings.given(kBatch));
  EXPECT_FALSE(settings.given(kSize));
}

TEST(Settings, AreReadInTheirOwnTypes) {
  const Settings settings(some());
  static_assert(std::is_same_v<decltype(settings[kBatch]), const std::int64_t&>);
  static_assert(std::is_same_v<decltype(settings[kRate]), const double&>);
  static_assert(std::is_same_v<decltype(settings[kSpin]), const bool&>);
  static_assert(std::is_same_v<decltype(settings[kSize]), const std::string&>);
}

TEST(Settings, OneOfAListIsWhatItWas) {
  const Setting<std::int64_t> whole = {.name = "whole",
                                       .value = 3,
                                       .help = "Help",
                                       .least = 1,
                                       .most = 4,
                                       .flag = true,
                                       .placeholder = "W",
                                       .default_text = "three"};
  const AnySetting any = whole;
  EXPECT_EQ(any.name, "whole");
  EXPECT_EQ(any.value, SettingValue(std::int64_t{3}));
  EXPECT_EQ(any.help, "Help");
  EXPECT_EQ(any.least, 1);
  EXPECT_EQ(any.most, 4);
  EXPECT_TRUE(any.flag);
  EXPECT_EQ(any.placeholder, "W");
  EXPECT_EQ(any.default_text, "three");
  EXPECT_THAT(AnySetting(kSize).choices, ElementsAre("small", "large"));
}

TEST(Settings, AreListedAsSetTakesThem) {
  Settings settings(some());
  settings.set("rate", "1e-3");
  EXPECT_THAT(settings.listed(),
              ElementsAre(Pair("batch", "128"), Pair("rate", "0.001"), Pair("spin", "1"),
                          Pair("size", "small"), Pair("note", "")));
}

TEST(Settings, ThoseThatWereGivenAreListedApart) {
  Settings settings(some());
  settings.set("rate", "1e-3");
  settings.set("size", "small");  // as the default
  EXPECT_THAT(settings.all_given(), ElementsAre(Pair("rate", "0.001"), Pair("size", "small")));
}

std::string refusal(const std::string& name, const std::string& text, bool by_flag = false) {
  return error_of(ErrorCode::kUsage, [&] { Settings(some()).set(name, text, by_flag); });
}

TEST(Settings, WhatIsNotAllowedIsRefusedWithTheRange) {
  EXPECT_THAT(refusal("batch", "0"), Eq("--set batch=0: must be a whole number from 1 on"));
  EXPECT_THAT(refusal("batch", "0", true), Eq("--batch 0: must be a whole number from 1 on"));
  EXPECT_THAT(refusal("batch", "2.5"), HasSubstr("must be a whole number"));
  EXPECT_THAT(refusal("batch", "99999999999999999999"),
              HasSubstr("must be a whole number from 1 on, at most 9223372036854775807"));
  EXPECT_THAT(refusal("rate", "1.5"), Eq("--set rate=1.5: must be a number from 0 to 1"));
  EXPECT_THAT(refusal("rate", "nan"), HasSubstr("must be a number from 0 to 1"));
  EXPECT_THAT(refusal("spin", "2"), Eq("--set spin=2: must be 0 or 1"));
  EXPECT_THAT(refusal("size", "smal", true),
              Eq("--size smal: must be one of small, large; did you mean 'small'?"));
  EXPECT_THAT(refusal("rat", "1"),
              Eq("--set rat: there is no such hyper-parameter; did you mean 'rate'? (batch, rate, "
                 "spin, size, note)"));
}

std::string faulty(const std::vector<AnySetting>& declared) {
  return error_of(ErrorCode::kInvalidArgument, [&] { Settings{declared}; });
}

TEST(Settings, AFaultyDeclarationIsRefused) {
  EXPECT_THAT(faulty({{.name = "Big", .value = 1}}), HasSubstr("'Big' needs a name"));
  EXPECT_THAT(faulty({{.name = "", .value = 1}}), HasSubstr("needs a name"));
  EXPECT_THAT(faulty({{.name = "a", .value = 1}, {.name = "a", .value = 2}}),
              HasSubstr("'a' is declared twice"));
  EXPECT_THAT(faulty({{.name = "a", .value = 1.5, .most = 1}}),
              HasSubstr("'a' has the default 1.5, which must be a number of at most 1"));
  EXPECT_THAT(faulty({{.name = "a", .value = true, .flag = true}}), HasSubstr("on by default"));
}

TEST(Settings, ASettingOfAnotherListIsRefused) {
  const Settings settings(some()), none{};
  const std::string unknown =
      "the setting 'bach' is not declared: add it to ProgramOptions::settings";
  const Setting<std::int64_t> bach = {.name = "bach", .value = 1};
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { settings[bach]; }), Eq(unknown));
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { settings.given(bach); }), Eq(unknown));
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { none[kBatch]; }),
              HasSubstr("'batch' is not declared"));
}

TEST(Settings, ASettingOfTheSameNameAndAnotherTypeIsRefused) {
  const Settings settings(some());
  const std::string other = "the setting 'batch' is declared as a whole number, not a text";
  const Setting<std::string> text = {.name = "batch", .value = ""};
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { settings[text]; }), Eq(other));
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { settings.given(text); }), Eq(other));
  const Setting<double> number = {.name = "batch", .value = 1};
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { settings[number]; }),
              Eq("the setting 'batch' is declared as a whole number, not a number"));
}

}  // namespace
}  // namespace paceline
