#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "checkpoint/testing/stopping_disk.h"
#include "summary/event_reader.h"
#include "summary/event_record.h"
#include "summary/event_writer.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;
using testing::StoppingDisk;

class EventFile : public ::testing::Test {
 protected:
  EventFile() { std::filesystem::create_directories(folder_); }
  ~EventFile() override { std::filesystem::remove_all(folder_); }

  static std::vector<SummaryEvent> read(const std::string& path) {
    std::vector<SummaryEvent> events;
    EventReader reader(path);
    while (auto event = reader.next()) events.push_back(*event);
    return events;
  }
  static std::string bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  std::string write(const std::string& bytes) const {
    std::ofstream(folder_ + "/copy", std::ios::binary) << bytes;
    return folder_ + "/copy";
  }
  std::string sample() const {
    EventWriter writer(folder_, 40);
    writer.add({.step = 41, .values = {{"loss", 0.5F}}});
    writer.add({.step = 42, .values = {{"loss", 0.25F}}});
    return writer.path();
  }

  const std::string folder_ = ::testing::TempDir() + "paceline-events-" + std::to_string(getpid());
};

TEST_F(EventFile, IsReadAsItWasWritten) {
  const std::string path = sample();
  EXPECT_THAT(path, HasSubstr(folder_ + "/events.out.tfevents."));
  const std::vector<SummaryEvent> events = read(path);
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_TRUE(events[1].start);
  EXPECT_EQ(events[1].step, 41);
  EXPECT_EQ(events[3].step, 42);
  EXPECT_EQ(events[3].values, (std::vector<SummaryValue>{{"loss", 0.25F}}));
  EXPECT_GT(events[3].wall_time, 1.6e9);
}

// The first checksum is the published example of a masked checksum.
TEST_F(EventFile, HasChecksumsAsTheFormatSays) {
  EXPECT_EQ(masked_checksum(""), 0xa282ead8);
  EXPECT_EQ(masked_checksum("123456789"), ((0xe3069283 >> 15 | 0xe3069283 << 17) + 0xa282ead8));
  EXPECT_EQ(make_record("abc").size(), kRecordHeadBytes + 3 + kRecordTailBytes);
}

TEST_F(EventFile, EndsWhereItIsCutShort) {
  const std::string bytes = bytes_of(sample());
  std::size_t before = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::size_t events = read(write(bytes.substr(0, size))).size();
    EXPECT_GE(events, before);
    EXPECT_LT(events, 4U);
    before = events;
  }
  EXPECT_EQ(before, 3U);
}

TEST_F(EventFile, NamesFileAndPlaceOfAWrongByte) {
  const std::string bytes = bytes_of(sample());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string wrong = bytes;
    wrong[at] = char(wrong[at] ^ 0x10);
    const std::string path = write(wrong);
    try {
      read(path);
      ADD_FAILURE() << "byte " << at;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
      EXPECT_THAT(error.what(), HasSubstr(path + ": record at byte "));
    }
  }
}

TEST_F(EventFile, RefusesAnEventThatIsNone) {
  const std::string path = write(make_record("abc"));
  EXPECT_THROW(read(path), Error);
  EXPECT_THROW(read(folder_ + "/none"), Error);
}

TEST_F(EventFile, SaysWhenTheDiskIsFull) {
  const StoppingDisk disk(4, StoppingDisk::Then::kFull);  // the folder, the file and two events
  EventWriter writer(folder_, 0, disk);
  EXPECT_THROW(writer.add({.step = 1}), Error);
  // The disk has room again; this record replaces the one that was cut short.
  writer.add({.step = 2});
  const std::vector<SummaryEvent> events = read(writer.path());
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[2].step, 2);
}

}  // namespace
}  // namespace paceline
