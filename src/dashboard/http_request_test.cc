#include "dashboard/http_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::StartsWith;

TEST(HttpRequest, ItsHeadEndsWithAnEmptyLine) {
  EXPECT_EQ(head_bytes("GET / HTTP/1.1\r\nHost: a\r\n\r\nmore"), 27u);
  EXPECT_EQ(head_bytes("GET / HTTP/1.1\n\n"), 16u);
  EXPECT_EQ(head_bytes("GET / HTTP/1.1\r\nHost: a\r\n"), 0u);
  EXPECT_EQ(head_bytes(""), 0u);
}

TEST(HttpRequest, IsAMethodAPathAndAHost) {
  EXPECT_THAT(
      parse_http_request("GET /state.json?x=1 HTTP/1.1\r\nAccept: */*\r\nHoSt:  a:80 \r\n\r\n"),
      Optional(HttpRequest{"GET", "/state.json", "a:80"}));
  EXPECT_THAT(parse_http_request("HEAD / HTTP/1.0\r\n\r\n"),
              Optional(HttpRequest{"HEAD", "/", ""}));
}

TEST(HttpRequest, BringsAToken) {
  const auto token = [](const std::string& target, const std::string& fields) {
    return parse_http_request("GET " + target + " HTTP/1.1\r\n" + fields + "\r\n")->token;
  };
  EXPECT_EQ(token("/", ""), "");
  EXPECT_EQ(token("/?token=a-b", ""), "a-b");
  EXPECT_EQ(token("/?x=1&token=ab&y=2", ""), "ab");
  EXPECT_EQ(token("/?atoken=ab&=&", ""), "");
  EXPECT_EQ(token("/", "authorization:  Bearer  ab \r\n"), "ab");
  EXPECT_EQ(token("/?token=ab", "Authorization: Bearer cd\r\n"), "cd");
  EXPECT_EQ(token("/", "Authorization: Basic ab\r\n"), "");
}

TEST(HttpRequest, OfAnythingElseThereIsNone) {
  for (const char* text : {"", "\r\n\r\n", "GET\r\n\r\n", "GET /\r\n\r\n", "GET / FTP/1\r\n\r\n",
                           "GET http://a/ HTTP/1.1\r\n\r\n", "GET / x HTTP/1.1\r\n\r\n",
                           "\x16\x03\x01\x02\n\n", "PLN2 is no HTTP\n\n"}) {
    EXPECT_EQ(parse_http_request(text), std::nullopt) << text;
  }
}

TEST(HttpResponse, SaysItsLengthAndThatNothingElseMayBeLoaded) {
  const HttpResponse response{.status = 404, .body = "No.\n"};
  EXPECT_THAT(text_of(response, false), StartsWith("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_THAT(text_of(response, false), HasSubstr("Content-Length: 4\r\n"));
  EXPECT_THAT(text_of(response, false), HasSubstr("default-src 'none'"));
  EXPECT_THAT(text_of(response, false), EndsWith("\r\n\r\nNo.\n"));
  EXPECT_THAT(text_of(response, true), EndsWith("\r\n\r\n"));
}

}  // namespace
}  // namespace paceline
