#include "run/config/config_value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "base/testing/error_of.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Kind = ConfigValue::Kind;
using Parse = ConfigValue (*)(std::string_view, const std::string&);

std::string refusal_of(Parse parse, const std::string& text) {
  return error_of(ErrorCode::kUsage, [&] { parse(text, "job"); });
}

std::pair<int, int> at(const ConfigValue& value) { return {value.line, value.column}; }
using Place = std::pair<int, int>;

TEST(ConfigJson, ValuesKnowWhereTheyAre) {
  const ConfigValue root = parse_json(
      "{\n  \"steps\": 12,\n  \"set\" : {\"rate\":1e-4, \"n\":[1,\"b\" ,true]}\n}\n", "job");
  ASSERT_EQ(root.items.size(), 2U);
  const ConfigValue& steps = root.items[0];
  EXPECT_EQ(steps.key, "steps");
  EXPECT_EQ(steps.kind, Kind::kNumber);
  EXPECT_EQ(steps.text, "12");
  EXPECT_EQ(at(steps), Place(2, 3));
  const ConfigValue& set = root.items[1];
  EXPECT_EQ(at(set), Place(3, 3));
  EXPECT_EQ(set.find("rate")->text, "1e-4");
  EXPECT_EQ(at(*set.find("rate")), Place(3, 12));
  const ConfigValue& list = *set.find("n");
  EXPECT_EQ(list.kind, Kind::kList);
  EXPECT_EQ(at(list.items[0]), Place(3, 30));
  EXPECT_EQ(at(list.items[1]), Place(3, 32));
  EXPECT_EQ(at(list.items[2]), Place(3, 37));
  EXPECT_EQ(list.items[2].kind, Kind::kSwitch);
}

TEST(ConfigToml, ValuesKnowWhereTheyAre) {
  const ConfigValue root = parse_toml(
      "steps = 12\nquiet = true\n\n[set]\n  rate = 0.5 # half\n  n = [1,\n    \"b\"]\n", "job");
  EXPECT_EQ(root.find("steps")->text, "12");
  EXPECT_EQ(at(*root.find("quiet")), Place(2, 1));
  EXPECT_EQ(root.find("quiet")->kind, Kind::kSwitch);
  const ConfigValue& set = *root.find("set");
  EXPECT_EQ(set.find("rate")->text, "0.5");
  EXPECT_EQ(at(*set.find("rate")), Place(5, 3));
  EXPECT_EQ(at(set.find("n")->items[1]), Place(7, 5));
}

TEST(ConfigJson, WhatIsNoJsonIsRefusedWithItsPlace) {
  EXPECT_THAT(refusal_of(parse_json, ""), StartsWith("job, line 1, column 1: "));
  EXPECT_THAT(refusal_of(parse_json, "{\n \"a\": tru\n}"), StartsWith("job, line 2, column "));
  EXPECT_THAT(refusal_of(parse_json, "{\"a\":1,}"), StartsWith("job, line 1, column 8: "));
  EXPECT_THAT(refusal_of(parse_json, "{\"a\":1}\nx"), StartsWith("job, line 2, column 1: "));
  EXPECT_THAT(refusal_of(parse_json, "{\"a\":1e999}"), StartsWith("job, line 1, column "));
  EXPECT_THAT(refusal_of(parse_json, "{\"a\":1,\n \"a\":2}"),
              testing::StrEq("job, line 2, column 2: 'a' is given twice"));
  EXPECT_THAT(refusal_of(parse_json, std::string(40, '[')), HasSubstr("nested too deep"));
}

TEST(ConfigToml, WhatIsNoTomlIsRefusedWithItsPlace) {
  EXPECT_THAT(refusal_of(parse_toml, "a = 1\nb = \n"), StartsWith("job, line 2, column "));
  EXPECT_THAT(refusal_of(parse_toml, "a = 1\na = 2\n"), StartsWith("job, line 2, column "));
  EXPECT_THAT(refusal_of(parse_toml, "a = 1\n [[[x]]]\n"),
              StartsWith("job, line 2, column 2: a table's"));
  EXPECT_THAT(refusal_of(parse_toml, "[a]\n[=]\n"), StartsWith("job, line 2, column 1: a table's"));
  EXPECT_THAT(refusal_of(parse_toml, "a = " + std::string(40, '[') + std::string(40, ']')),
              HasSubstr("nested too deep"));
}

}  // namespace
}  // namespace paceline
