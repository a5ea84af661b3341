#include "base/plain_text.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(PlainText, HasNoControlCharacters) {
  EXPECT_EQ(plain_text("pid 7 on b"), "pid 7 on b");
  EXPECT_EQ(plain_text("a\x1b[2Jb\nc\rd\te\x7f"), "a?[2Jb?c?d?e?");
  EXPECT_EQ(plain_text("\xc2\x9b"
                       "2J"),
            "?2J");
  EXPECT_EQ(plain_text("größer \xc2\xb5m"), "größer \xc2\xb5m");
  EXPECT_EQ(plain_text(std::string("\0x\xc2", 3)), "?x\xc2");
}

TEST(PlainText, OfSeveralLinesKeepsThem) { EXPECT_EQ(plain_lines("a\n\tb\x1b\r\n"), "a\n\tb??\n"); }

}  // namespace
}  // namespace paceline
