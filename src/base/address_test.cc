#include "base/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/error_of.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using testing::HasSubstr;

TEST(Address, IsReadAndWritten) {
  EXPECT_EQ(parse_address("worker3:2222"), (Address{"worker3", 2222}));
  EXPECT_EQ(parse_address("[fe80::1]:0"), (Address{"fe80::1", 0}));
  for (const char* text : {"worker3:2222", "10.0.0.7:65535", "[::1]:1"})
    EXPECT_EQ(text_of(parse_address(text)), text);
}

TEST(Address, ErrorsNameTheText) {
  for (const char* text :
       {"", ":1", "host", "host:", "host:x", "host:65536", "host:-1", "host: 1", "::1:5", "[::1]",
        "[::1:5", "[::1]5", "[]:5", "a b:1", "host:1:2", "host:080", "[host]:1"}) {
    try {
      parse_address(text);
      FAIL() << text << " was read";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_THAT(error.what(), HasSubstr("'" + std::string(text) + "'"));
    }
  }
}

std::string fault_of(const std::string& text) {
  return error_of(ErrorCode::kInvalidArgument, [&] { parse_address(text); });
}

// The system would read these texts as other addresses: "010.0.0.1" as 8.0.0.1, for example.
TEST(Address, IsNotReadFromNumbersThatTheSystemTakesForOthers) {
  for (const char* text : {"010.0.0.1:1", "10.0.0.08:1", "10.00.0.1:1", "256.0.0.1:1", "10.1:1",
                           "1:1", "0x7f.0.0.1:1", "0x7f000001:1", "10.0.0.1.:1", "1.2.3.4.5:1"})
    EXPECT_THAT(fault_of(text), HasSubstr("is no IPv4 address")) << text;
  for (const char* text : {"0.0.0.0:1", "100.20.0.255:1", "ps-0.job:1", "3com.example:1",
                           "10.example.:1", "[fe80::1%eth0]:1"})
    EXPECT_EQ(text_of(parse_address(text)), text);
}

TEST(Address, NamesASchemeAsTheFault) {
  for (const char* text : {"grpc://h:1", "http://h:1", "grpc://h", "tcp://[::1]:1"})
    EXPECT_THAT(fault_of(text),
                HasSubstr("leave out the scheme '" +
                          std::string(text).substr(0, std::string(text).find('/')) + "//'"));
}

TEST(Address, LoopbackIsToldFromOthers) {
  for (const char* text :
       {"localhost:1", "localhost", "127.0.0.1:2", "127.9.9.9", "[::1]:3", "::1"})
    EXPECT_TRUE(is_loopback(text)) << text;
  for (const char* text : {"0.0.0.0:1", "10.0.0.1:1", "[::]:1", "::", "localhost.example:1",
                           "127.0.0.1.example:1", "ps0:2222"})
    EXPECT_FALSE(is_loopback(text)) << text;
}

TEST(Address, TellsWhatStaysWithinOneHost) {
  EXPECT_TRUE(is_within_host("127.0.0.1:40000", "127.0.1.1:2222"));
  EXPECT_TRUE(is_within_host("[::1]:40000", "[::1]:2222"));
  EXPECT_TRUE(is_within_host("10.0.0.7:40000", "10.0.0.7:2222"));
  EXPECT_FALSE(is_within_host("10.0.0.7:40000", "a peer without address"));
  EXPECT_FALSE(is_within_host("10.0.0.7:40000", "10.0.0.8:2222"));
  EXPECT_FALSE(is_within_host("[fd00::1]:40000", "[fd00::2]:2222"));
}

}  // namespace
}  // namespace paceline
