#include "net/shm/shm_ring.h"

#include <gmock/gmock.h>

#include <cstring>
#include <deque>
#include <random>
#include <thread>

#include "base/deadline.h"
#include "net/frame.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using testing::HasSubstr;

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::size_t count, unsigned seed) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = std::byte(seed + i);
  return bytes;
}

/// One side of a connection.
struct Side {
  Side(const std::shared_ptr<SharedMemory>& own, const std::shared_ptr<SharedMemory>& peers)
      : pair(own, peers) {}

  bool send_short(const Bytes& frame) {
    const std::span<std::byte> place = writer.short_place(frame.size());
    if (place.empty()) return false;
    std::ranges::copy(frame, place.begin());
    writer.publish_short(place.size());
    return true;
  }
  void send(const Bytes& frame) {
    if (send_short(frame)) return;
    ASSERT_GE(writer.room(frame.size()), frame.size());
    writer.write(frame);
    writer.publish();
  }
  /// Returns all bytes that have arrived. If `release` is true, gives their room back.
  Bytes receive(bool release = true) {
    Bytes bytes(reader.available());
    reader.read(bytes);
    if (release) reader.release();
    return bytes;
  }
  std::byte* ring() const { return pair.own->bytes().data() + kShmDataAt; }

  ShmPair pair;
  ShmReader reader{pair};
  ShmWriter writer{pair, reader};
};

class ShmRing : public testing::Test {
 protected:
  std::shared_ptr<SharedMemory> left_ = SharedMemory::create(kShmMemoryBytes);
  std::shared_ptr<SharedMemory> right_ = SharedMemory::create(kShmMemoryBytes);
  Side a_{left_, right_}, b_{right_, left_};
  /// Returns the bytes that the reader finds once short_ and other_ were sent.
  Bytes both() const {
    Bytes bytes = short_;
    bytes.insert(bytes.end(), other_.begin(), other_.end());
    return bytes;
  }

  const Bytes short_ = bytes_of(kShmShortBytes, 1), other_ = bytes_of(40, 101);
};

TEST_F(ShmRing, CarriesAShortFrameBesideHead) {
  EXPECT_TRUE(a_.send_short(short_));
  EXPECT_EQ(a_.pair.mine().head.load(), kShmBesideHead | kShmShortBytes);
  EXPECT_EQ(a_.ring()[0], std::byte{0});
  EXPECT_TRUE(b_.reader.has_data());
  EXPECT_EQ(b_.receive(), short_);
  EXPECT_FALSE(b_.reader.has_data());
  EXPECT_EQ(b_.reader.available(), 0u);
}

TEST_F(ShmRing, PutsALongerFrameIntoTheRing) {
  const Bytes longer = bytes_of(kShmShortBytes + 1, 1);
  EXPECT_FALSE(a_.send_short(longer));
  a_.send(longer);
  EXPECT_EQ(std::memcmp(a_.ring(), longer.data(), longer.size()), 0);
  EXPECT_EQ(b_.receive(), longer);
}

TEST_F(ShmRing, PutsAFrameIntoTheRingBehindOneThatIsNotRead) {
  a_.send(short_);
  EXPECT_FALSE(a_.send_short(other_));
  a_.send(other_);
  EXPECT_EQ(b_.receive(), both());
}

TEST_F(ShmRing, KeepsAShortFrameThatIsReadWhileAnotherFollows) {
  a_.send(short_);
  ASSERT_EQ(b_.reader.available(), kShmShortBytes);  // the reader has copied it
  a_.send(other_);
  Bytes first(kShmShortBytes);
  b_.reader.read(first);
  EXPECT_EQ(first, short_);
  EXPECT_EQ(b_.receive(), other_);
}

TEST_F(ShmRing, MovesAShortFrameOverTheEndOfTheRing) {
  for (std::size_t left = kShmRingBytes - 20; left > 0;) {
    const Bytes piece = bytes_of(std::min<std::size_t>(left, 100'000), 5);
    a_.send(piece);
    ASSERT_EQ(b_.receive(), piece);
    left -= piece.size();
  }
  a_.send(short_);
  a_.send(other_);
  EXPECT_EQ(b_.receive(), both());
}

TEST_F(ShmRing, AnswerTellsThatAllIsRead) {
  a_.send(short_);
  EXPECT_EQ(b_.receive(false), short_);
  EXPECT_FALSE(a_.send_short(other_));  // a_ does not yet know that b_ has read
  EXPECT_TRUE(b_.send_short(other_));
  EXPECT_EQ(a_.pair.theirs().tail.load(), 0u);
  EXPECT_EQ(a_.receive(), other_);
  EXPECT_TRUE(a_.send_short(other_));
  EXPECT_EQ(b_.receive(), other_);
}

TEST_F(ShmRing, WhatIsGivenBackTellsThatAllIsRead) {
  a_.send(short_);
  EXPECT_EQ(b_.receive(), short_);
  EXPECT_TRUE(a_.send_short(other_));
  EXPECT_EQ(b_.receive(), other_);
}

// Short frames take no room in the ring.
TEST_F(ShmRing, HoldsNoMoreThanItIsLongAfterManyShortFrames) {
  for (std::size_t sent = 0; sent <= 2 * kShmRingBytes; sent += other_.size()) {
    ASSERT_TRUE(a_.send_short(other_));
    ASSERT_EQ(b_.receive(), other_);
  }
  EXPECT_EQ(a_.writer.room(kShmRingBytes), kShmRingBytes);
  a_.writer.write(Bytes(kShmRingBytes));
  EXPECT_EQ(a_.writer.room(1), 0u);
}

TEST_F(ShmRing, RefusesAShortFrameThatIsTooLong) {
  a_.pair.mine().head = kShmBesideHead | (kShmShortBytes + 1);
  try {
    b_.reader.available();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    EXPECT_THAT(error.what(), HasSubstr("49 bytes when 0 were read, and a short frame holds 48"));
  }
}

// A peer that lies may leave part of a short frame unread. The reader then reads what the latest
// head announces.
TEST_F(ShmRing, ForgetsTheRestOfAShortFrameWhenHeadSaysThatItIsInTheRing) {
  const Bytes frame = bytes_of(100, 7);
  std::memcpy(a_.ring(), frame.data(), frame.size());
  a_.pair.mine().head = kShmBesideHead | 40;
  ASSERT_EQ(b_.reader.available(), 40u);
  Bytes first(32);
  b_.reader.read(first);
  a_.pair.mine().head = 100;
  EXPECT_EQ(b_.receive(), Bytes(frame.begin() + 32, frame.end()));
}

// Both sides send and read frames of all lengths at the same time, and each receives the bytes that
// were sent.
TEST_F(ShmRing, CarriesStreamsBothWays) {
  constexpr std::size_t kBytes = 4 << 20;
  const auto byte_at = [](std::size_t i) { return std::byte(i * 7 + i / 251); };
  const auto serve = [&](Side& side, unsigned seed) {
    std::mt19937 random(seed);
    std::size_t sent = 0, received = 0;
    const Deadline deadline = Deadline::after(std::chrono::seconds(60));
    while ((sent < kBytes || received < kBytes) && !deadline.passed()) {
      const std::size_t wanted = random() % 2 == 0 ? 32 + random() % 17 : random() % 5000;
      const std::size_t length = std::min(wanted, kBytes - sent);
      if (length > 0 && side.writer.room(length) >= length) {
        Bytes frame(length);
        for (std::size_t i = 0; i < length; ++i) frame[i] = byte_at(sent + i);
        side.send(frame);
        sent += length;
      }
      const Bytes come = side.receive(random() % 3 != 0);
      for (std::size_t i = 0; i < come.size(); ++i) {
        ASSERT_EQ(come[i], byte_at(received + i)) << "byte " << received + i;
      }
      received += come.size();
      side.reader.release();
    }
    EXPECT_EQ(received, kBytes);
  };
  std::jthread other([&] { serve(b_, 2); });
  serve(a_, 1);
}

}  // namespace
}  // namespace paceline
