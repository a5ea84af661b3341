#include "params/shard/copy_on_write_snapshot.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

namespace paceline {
namespace {

constexpr std::size_t kFloats = 300'000;  // several regions, the last of them short

class CopyOnWriteSnapshotTest : public testing::Test {
 protected:
  // Updates as a rule does: a part of the arrays at a time, after before_change() for that part.
  void update(std::size_t begin, std::size_t end) {
    snapshot_.before_change(begin * sizeof(float), end * sizeof(float));
    for (std::size_t i = begin; i < end; ++i) value_[i] += 1, slot_[i] -= 1;
  }
  std::vector<float> read(std::size_t array) {
    std::vector<float> values(kFloats);
    for (std::size_t i = 0; i < kFloats; i += 1000) {
      const auto bytes = snapshot_.read(array, i * sizeof(float), 1000 * sizeof(float));
      std::memcpy(values.data() + i, bytes.data(), bytes.size());
    }
    return values;
  }
  std::vector<float> value_ = std::vector<float>(kFloats, 5), slot_ = value_;
  CopyOnWriteSnapshot snapshot_{
      {std::as_bytes(std::span(value_)), std::as_bytes(std::span(slot_))}};
};

TEST_F(CopyOnWriteSnapshotTest, KeepsWhatWasThereWhenItWasMarked) {
  update(0, kFloats);
  snapshot_.mark(7);
  EXPECT_EQ(snapshot_.count(), 7);
  update(100, 200'001);
  update(0, kFloats);
  EXPECT_EQ(read(0), std::vector<float>(kFloats, 6));
  EXPECT_EQ(read(1), std::vector<float>(kFloats, 4));
  snapshot_.mark(8);
  EXPECT_EQ(read(0), value_);
}

TEST_F(CopyOnWriteSnapshotTest, IsOneMomentWhileManyUpdateAndOneReads) {
  for (int round = 0; round < 20; ++round) {
    snapshot_.mark(round);
    const std::vector<float> before = value_;
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 3; ++t) {
      threads.emplace_back([this, t] {  // ranges that share regions
        for (std::size_t i = t * 100'000; i < (t + 1) * 100'000; i += 1000) update(i, i + 1000);
      });
    }
    const std::vector<float> kept = read(0);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(kept, before);
  }
}

}  // namespace
}  // namespace paceline
