#include "net/connection_end.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace paceline {
namespace {

TEST(ConnectionEnd, TheEarliestCauseStays) {
  ConnectionEnd end("b:1");
  EXPECT_FALSE(end.noted());
  EXPECT_STREQ(end.verdict("").what(), "b:1 closed the connection or died");
  EXPECT_STREQ(end.verdict("in a message").what(),
               "b:1 closed the connection or died in a message");
  end.note_closed_here();
  end.note({ErrorCode::kDataLoss, "garbage"});
  EXPECT_TRUE(end.noted());
  EXPECT_EQ(end.verdict("in a message").code(), ErrorCode::kCancelled);
}

TEST(ConnectionEnd, WhatWasThrownNamesThePeer) {
  const ConnectionEnd end("b:1");
  try {
    throw Error(ErrorCode::kDataLoss, "a torn header");
  } catch (const std::exception&) {
    EXPECT_EQ(end.of_current_exception().code(), ErrorCode::kDataLoss);
    EXPECT_STREQ(end.of_current_exception().what(), "b:1: a torn header");
  }
  try {
    throw std::runtime_error("no");
  } catch (const std::exception&) {
    EXPECT_EQ(end.of_current_exception().code(), ErrorCode::kInternal);
    EXPECT_STREQ(end.of_current_exception().what(), "the receiver of b:1 threw: no");
  }
}

}  // namespace
}  // namespace paceline
