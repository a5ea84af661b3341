#include "net/connection_end.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace paceline {
namespace {

TEST(ConnectionEnd, TheEarliestCauseStays) {
  ConnectionEnd end("b:1");
  EXPECT_STREQ(end.reason("").what(), "b:1 closed the connection or died");
  EXPECT_STREQ(end.reason("in a message").what(), "b:1 closed the connection or died in a message");
  end.note(error_of_closing_here("b:1"));
  end.note({ErrorCode::kDataLoss, "garbage"});
  EXPECT_EQ(end.reason("in a message").code(), ErrorCode::kCancelled);
}

TEST(ConnectionEnd, WhatWasThrownNamesThePeer) {
  try {
    throw Error(ErrorCode::kDataLoss, "a torn header");
  } catch (const std::exception&) {
    EXPECT_EQ(error_of_current_exception("b:1").code(), ErrorCode::kDataLoss);
    EXPECT_STREQ(error_of_current_exception("b:1").what(), "b:1: a torn header");
  }
  try {
    throw std::runtime_error("no");
  } catch (const std::exception&) {
    EXPECT_EQ(error_of_current_exception("b:1").code(), ErrorCode::kInternal);
    EXPECT_STREQ(error_of_current_exception("b:1").what(), "the receiver of b:1 threw: no");
  }
}

}  // namespace
}  // namespace paceline
