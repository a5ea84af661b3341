#include "paceline/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/error_of.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using testing::ElementsAre;
using testing::Eq;
using testing::HasSubstr;
using testing::Pair;

std::vector<Setting> some() {
  return {batch_setting(128),
          {.name = "rate", .value = 0.5, .least = 0, .most = 1},
          {.name = "spin", .value = true},
          {.name = "size", .value = "small", .choices = {"small", "large"}, .flag = true},
          {.name = "note", .value = ""}};
}

TEST(Settings, HaveTheirDefaultsUntilTheyAreSet) {
  Settings settings(some());
  EXPECT_EQ(settings.whole("batch"), 128);
  EXPECT_EQ(settings.number("batch"), 128);
  EXPECT_EQ(settings.number("rate"), 0.5);
  EXPECT_TRUE(settings.on("spin"));
  EXPECT_EQ(settings.text("size"), "small");
  EXPECT_FALSE(settings.given("batch"));
  settings.set("batch", "64");
  settings.set("spin", "false");
  settings.set("note", "a=b");
  EXPECT_EQ(settings.whole("batch"), 64);
  EXPECT_FALSE(settings.on("spin"));
  EXPECT_EQ(settings.text("note"), "a=b");
  EXPECT_TRUE(settings.given("batch"));
  EXPECT_FALSE(settings.given("no_such_setting"));
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

std::string faulty(const std::vector<Setting>& declared) {
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

TEST(Settings, AWrongNameOrTypeInTheProgramIsSaid) {
  const Settings settings(some());
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { settings.whole("bach"); }),
              Eq("the setting 'bach' is not declared; did you mean 'batch'?"));
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { settings.text("batch"); }),
              Eq("the setting 'batch' is a whole number, not a text"));
}

}  // namespace
}  // namespace paceline
