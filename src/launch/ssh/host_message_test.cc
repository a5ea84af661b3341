#include "launch/ssh/host_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "paceline/error.h"

namespace paceline {
namespace {

const HostMessage kMessage{HostMessage::Kind::kStart, 7, -3, {"", std::string("a\0b\xff", 4), "c"}};

std::string bytes_of_all(const std::vector<std::string>& chunks, const std::string& between = "") {
  std::string all;
  for (const std::string& chunk : chunks) all.append(between).append(chunk).append(between);
  return all;
}

TEST(HostMessages, AreReadAsTheyWereWrittenHoweverTheyArrive) {
  HostMessage large = kMessage;
  large.texts.emplace_back(100'000, 'x');
  std::string bytes = bytes_of_all(chunks_of(kMessage)) + bytes_of_all(chunks_of(large));
  HostMessageReader reader;
  std::vector<HostMessage> read;
  for (const char byte : bytes) {
    reader.add({&byte, 1});
    while (const auto message = reader.next()) read.push_back(*message);
  }
  EXPECT_THAT(read, testing::ElementsAre(kMessage, large));
}

TEST(HostMessages, MayHaveAPulseBetweenChunksThatAPipeTakesWhole) {
  HostMessage large = kMessage;
  large.texts.emplace_back(20'000, 'x');
  const std::vector<std::string> chunks = chunks_of(large);
  EXPECT_GT(chunks.size(), 4U);
  for (const std::string& chunk : chunks) EXPECT_LE(chunk.size(), 4096U);
  HostMessageReader reader;
  reader.add(bytes_of_all(chunks, pulse()));
  EXPECT_EQ(reader.next(), large);
  EXPECT_EQ(reader.next(), std::nullopt);
}

TEST(HostMessages, OfOtherBytesAreRefused) {
  const std::string too_long = "\xff\xff\xff\xff";
  const std::string without_an_end = std::string("\x01\0\0\0\x05", 5);
  for (const std::string& text : {too_long, without_an_end}) {
    HostMessageReader reader;
    reader.add(std::string{char(text.size()), '\0'} + text);
    EXPECT_THROW(reader.next(), Error) << testing::PrintToString(text);
  }
  HostMessageReader reader;
  std::string short_one = chunks_of(kMessage).front();
  short_one[2 + 4 + 1 + 8] = 100;  // the count of its texts
  reader.add(short_one);
  EXPECT_THROW(reader.next(), Error);
}

TEST(HostMessages, AJobIsReadAsItWasWritten) {
  const HostJob job{"/work", "./program",      "0.0.0.0",           7000, 2, 30'000,
                    12'000,  {"A=b\nc", "D="}, {"ps:0", "worker:1"}};
  EXPECT_EQ(job_of(message_of(job)), job);
  HostMessage message = message_of(job);
  message.texts[7] = "9";
  EXPECT_THROW(job_of(message), Error);
  message.texts.resize(3);
  EXPECT_THROW(job_of(message), Error);
}

}  // namespace
}  // namespace paceline
