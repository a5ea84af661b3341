#include "params/shard/shard_piece.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstring>
#include <future>
#include <thread>

#include "paceline/error.h"

namespace paceline {
namespace {

std::vector<std::byte> bytes_of(const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

/// A piece with the memory that it lies in.
struct HeldPiece {
  HeldPiece(const VariableSpec& variable, const Piece& where, int threads = 1)
      : memory(piece_bytes(variable, where)),
        pool(threads),
        piece(variable, where, memory.span(), pool) {}
  Buffer memory;
  ApplyPool pool;
  ShardPiece piece;
};

std::vector<float> values_of(ShardPiece& piece) {
  std::vector<float> values(piece.bytes() / sizeof(float));
  piece.copy(0, std::as_writable_bytes(std::span(values)));
  return values;
}

TEST(ShardPiece, RowsAreNamedAsInTheVariable) {
  HeldPiece held({.name = "e", .shape = {10, 2}, .rule = Add{}, .sparse = true},
                 {.id = 1, .variable = 0, .first_row = 4, .rows = 3, .ps = 0});
  ShardPiece& piece = held.piece;
  EXPECT_FALSE(piece.has_row(3));
  EXPECT_TRUE(piece.has_row(6));
  EXPECT_FALSE(piece.has_row(7));
  const std::vector<std::int32_t> rows = {4, 6};
  const std::vector<float> gradient = {1, 2, 3, 4};
  piece.apply_rows({.count = 1}, rows, gradient.data());
  EXPECT_EQ(values_of(piece), (std::vector<float>{1, 2, 0, 0, 3, 4}));
  std::vector<float> row(2);
  piece.copy_rows(std::vector<std::int32_t>{6}, std::as_writable_bytes(std::span(row)));
  EXPECT_EQ(row, (std::vector<float>{3, 4}));
}

// Tries again if the other thread has released the lock before this thread asks for it.
TEST(ShardPiece, CountsHowLongAnApplyWaitsForAnotherThread) {
  HeldPiece held({.name = "w", .shape = {4}, .rule = Add{}},
                 {.id = 0, .variable = 0, .first_row = 0, .rows = 4, .ps = 0});
  const std::vector<std::byte> gradient = bytes_of({1, 2, 3, 4});
  ShardPiece::take_lock_wait();
  held.piece.apply({.count = 1}, 0, gradient, {});
  EXPECT_EQ(ShardPiece::take_lock_wait(), Duration(0)) << "nobody else was there";
  Duration waited{0};
  for (const Deadline until = Deadline::after(std::chrono::seconds(60));
       waited == Duration(0) && !until.passed();) {
    std::barrier both(2);
    std::jthread other([&] {
      held.piece.with_value([&](std::span<const std::byte>) {
        both.arrive_and_wait();
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        return true;
      });
    });
    both.arrive_and_wait();
    held.piece.apply({.count = 1}, 0, gradient, {});
    waited = ShardPiece::take_lock_wait();
  }
  EXPECT_GT(waited, Duration(0));
}

TEST(ShardPiece, AChunkGivesBackItsNewValues) {
  HeldPiece held({.name = "w", .shape = {4}, .rule = Add{}},
                 {.id = 0, .variable = 0, .first_row = 0, .rows = 4, .ps = 0});
  ShardPiece& piece = held.piece;
  std::vector<float> updated(2);
  piece.apply({.count = 1}, 8, bytes_of({5, 6}), std::as_writable_bytes(std::span(updated)));
  EXPECT_EQ(updated, (std::vector<float>{5, 6}));
  EXPECT_EQ(values_of(piece), (std::vector<float>{0, 0, 5, 6}));
}

TEST(ShardPiece, WhatIsWrittenIsReadAndAValueAloneMakesSlotsBeginAnew) {
  HeldPiece held({.name = "w", .shape = {2}, .rule = Adam{}},
                 {.id = 0, .variable = 0, .first_row = 0, .rows = 2, .ps = 0});
  ShardPiece& piece = held.piece;
  ASSERT_EQ(piece.arrays(), 4u);
  for (int i = 0; i < 5; ++i) piece.begin_contribution();
  std::vector<std::byte> all(piece.all_bytes());
  piece.copy_all(all);
  std::size_t before_count = 0, count_array = 0;
  for (std::size_t array = 1; array < piece.arrays(); ++array) {
    if (Rule(Adam{}).slots()[array - 1].scalar) count_array = array;
  }
  for (std::size_t array = 0; array < count_array; ++array) {
    before_count += piece.array_bytes(array);
  }
  std::int64_t count = 0;
  std::memcpy(&count, all.data() + before_count, sizeof(count));
  EXPECT_EQ(count, 5);
  piece.write(0, 0, bytes_of({1, 2}));
  EXPECT_EQ(piece.begin_contribution(), 1) << "the value alone: t begins anew";
  const std::int64_t restored = 41;
  piece.write(count_array, 0, std::as_bytes(std::span(&restored, 1)));
  EXPECT_EQ(piece.begin_contribution(), 42);
}

class CountingListener : public ChangeListener {
 public:
  void on_changed(ShardPiece&, bool wanted) override { ++(wanted ? wanted_values : told); }
  int told = 0, wanted_values = 0;
};

TEST(ShardPiece, TellsOfTheNextChangeOnce) {
  HeldPiece held({.name = "w", .shape = {2}, .rule = Add{}},
                 {.id = 0, .variable = 0, .first_row = 0, .rows = 2, .ps = 0});
  ShardPiece& piece = held.piece;
  CountingListener listener;
  const auto change = [&] { piece.apply({.count = 1}, 0, bytes_of({1, 1}), {}); };
  piece.changes().subscribe(listener);
  change();
  change();
  EXPECT_EQ(listener.told, 1);
  EXPECT_EQ(piece.changes().version(), 2u);
  EXPECT_TRUE(piece.changes().subscribe_after(2, listener));
  EXPECT_EQ(listener.wanted_values, 0);
  change();
  change();
  EXPECT_EQ(listener.wanted_values, 1);
  EXPECT_FALSE(piece.changes().subscribe_after(3, listener)) << "it has changed since";
  change();
  EXPECT_TRUE(piece.changes().subscribe_after(5, listener));
  piece.changes().subscribe(listener);
  change();
  EXPECT_EQ(listener.wanted_values, 1) << "the later wish counts";
  EXPECT_EQ(listener.told, 2);
  piece.changes().subscribe(listener);
  piece.write(0, 0, bytes_of({1, 2}));
  EXPECT_EQ(listener.told, 3);
}

// Whenever a change happens, either the returned version includes the change, or the listener is
// told.
TEST(ShardPiece, NoChangeIsMissedByWhoSubscribes) {
  HeldPiece held({.name = "w", .shape = {2}, .rule = Add{}},
                 {.id = 0, .variable = 0, .first_row = 0, .rows = 2, .ps = 0});
  ShardPiece& piece = held.piece;
  const auto change = [&] { piece.apply({.count = 1}, 0, bytes_of({1, 1}), {}); };
  constexpr int kRounds = 20'000;
  CountingListener listener;
  std::barrier round(2);
  std::thread changer([&] {
    for (int i = 0; i < kRounds; ++i) {
      round.arrive_and_wait();
      change();
      round.arrive_and_wait();
    }
  });
  int missed = 0;
  for (int i = 0; i < kRounds; ++i) {
    piece.changes().subscribe(listener);
    const int before = listener.told;
    round.arrive_and_wait();
    const std::uint64_t seen = piece.changes().subscribe(listener);
    round.arrive_and_wait();
    // A listener that was told of the change has no subscription any more, unless it has subscribed
    // again since.
    const bool told = listener.told > before;
    if (seen == piece.changes().version()) {
      const int by_then = listener.told;
      change();
      if (listener.told == by_then) ++missed;
    } else if (!told) {
      ++missed;
    }
  }
  changer.join();
  EXPECT_EQ(missed, 0);
}

// A declaration that arrives over a link may ask for an average of a variable that is not trained.
TEST(ShardPiece, AFrozenVariableHasNoMovingAverage) {
  HeldPiece held({.name = "w", .shape = {2}, .average_decay = 0.5f, .trained = false},
                 {.id = 0, .variable = 0, .first_row = 0, .rows = 2, .ps = 0});
  ASSERT_EQ(held.piece.arrays(), 1u);
  held.piece.write(0, 0, bytes_of({1, 2}));
  EXPECT_EQ(values_of(held.piece), (std::vector<float>{1, 2}));
}

// The variable has more elements than are written at a time, and the last part is shorter than the
// others.
TEST(ShardPiece, AReadIsFollowedByWhatChangesAllElements) {
  constexpr std::int64_t kElements = 90'001;
  HeldPiece held({.name = "w", .shape = {kElements}, .trained = false},
                 {.id = 0, .variable = 0, .first_row = 0, .rows = kElements, .ps = 0});
  ShardPiece& piece = held.piece;
  std::vector<float> before(kElements);
  for (std::size_t i = 0; i < before.size(); ++i) before[i] = float(1 + i % 7);
  piece.write(0, 0, std::as_bytes(std::span(before)));
  const std::uint64_t version = piece.changes().version();
  piece.was_read(ShardPiece::Reading::kInPlace);
  EXPECT_EQ(values_of(piece), before) << "nothing is to change it";
  EXPECT_EQ(piece.changes().version(), version);

  const AfterRead change = [](std::int64_t time, std::span<float> values) {
    for (float& value : values) value += time % 2 == 0 ? 1 : -1;
  };
  piece.change_after_reads(change);
  for (const auto reading : {ShardPiece::Reading::kInPlace, ShardPiece::Reading::kFrames}) {
    piece.was_read(reading);
    const std::vector<float> after = values_of(piece);
    for (std::size_t i = 0; i < after.size(); ++i) ASSERT_EQ(after[i], before[i] + 1) << i;
    piece.was_read(reading);
    EXPECT_EQ(values_of(piece), before) << "the time is counted";
  }
  EXPECT_EQ(piece.changes().version(), version + 4);
}

// Four threads contribute at once: one in chunks of 100,000 bytes, the others with the whole
// gradient in one call. All use one pool. No contribution is lost.
TEST(ShardPiece, ContributionsFromSeveralThreadsAddUp) {
  constexpr std::int64_t kElements = 700'001;
  HeldPiece held({.name = "w", .shape = {kElements}, .rule = Add{}},
                 {.id = 0, .variable = 0, .first_row = 0, .rows = kElements, .ps = 0}, 3);
  const std::vector<float> ones(kElements, 1.0f);
  const std::span<const std::byte> gradient = std::as_bytes(std::span(ones));
  std::vector<std::future<void>> workers;
  workers.reserve(4);
  for (int i = 0; i < 4; ++i) {
    workers.push_back(std::async(std::launch::async, [&, i] {
      const std::size_t chunk = i == 0 ? 100'000 : gradient.size();
      for (std::size_t offset = 0; offset < gradient.size(); offset += chunk) {
        const auto part = gradient.subspan(offset, std::min(chunk, gradient.size() - offset));
        std::vector<std::byte> updated(i % 2 == 0 ? part.size() : 0);
        held.piece.apply({.count = 1}, offset, part, updated);
      }
    }));
  }
  for (auto& worker : workers) worker.get();
  EXPECT_EQ(values_of(held.piece), std::vector<float>(kElements, 4.0f));
}

TEST(ShardPiece, RowsOnSeveralThreadsAreThoseOnOne) {
  const VariableSpec variable{.name = "e", .shape = {5000, 30}, .rule = Adam{}, .sparse = true};
  const Piece where{.id = 0, .variable = 0, .first_row = 100, .rows = 4900, .ps = 0};
  HeldPiece one(variable, where), many(variable, where, 4);
  std::vector<std::int32_t> rows;
  std::vector<float> gradient;
  for (std::int32_t row = 101; row < 5000; row += 1) {
    rows.push_back(row);
    for (int i = 0; i < 30; ++i) gradient.push_back(float(row % 17) - float(i));
  }
  for (HeldPiece* held : {&one, &many}) held->piece.apply_rows({.count = 1}, rows, gradient.data());
  EXPECT_EQ(values_of(one.piece), values_of(many.piece));
}

}  // namespace
}  // namespace paceline
