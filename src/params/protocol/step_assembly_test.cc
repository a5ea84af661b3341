#include "params/protocol/step_assembly.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/testing/error_of.h"
#include "base/virtual_time.h"
#include "params/protocol/reply_schedule.h"
#include "params/protocol/testing/virtual_link.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::size_t kDense = 0, kSparse = 1, kFrozen = 2, kEmpty = 3;

// The targets are a dense variable of two and a half chunks, rows [10, 30) of a sparse one, a
// frozen one, and one without elements.
StepAssembly assembly() {
  return StepAssembly({{.where = {.id = 4, .variable = 0, .first_row = 0, .rows = 5},
                        .variable = "w",
                        .row_bytes = kChunkBytes / 2},
                       {.where = {.id = 6, .variable = 1, .first_row = 10, .rows = 20},
                        .variable = "rows",
                        .sparse = true,
                        .row_bytes = 400},
                       {.where = {.id = 7, .variable = 2, .first_row = 0, .rows = 1},
                        .variable = "frozen",
                        .trained = false,
                        .row_bytes = 4},
                       {.where = {.id = 8, .variable = 3, .first_row = 0, .rows = 0},
                        .variable = "empty",
                        .row_bytes = 4}});
}

StepAssembly::Arrival arrive(StepAssembly& step, std::size_t position, std::size_t offset,
                             std::size_t bytes) {
  step.expect_chunk(position, offset, bytes);
  return step.chunk(position, bytes);
}

template <typename F>
std::string rejection(F&& function) {
  return error_of(ErrorCode::kDataLoss, std::forward<F>(function));
}

TEST(StepAssembly, AppliesDenseChunksAsTheyArrive) {
  StepAssembly step = assembly();
  step.begin(0, false, Fate::kApply);
  EXPECT_TRUE(step.applies_chunks(kDense));
  for (const Cut cut : byte_cuts(5 * kChunkBytes / 2)) {
    const StepAssembly::Arrival arrival = arrive(step, kDense, cut.begin, cut.size);
    EXPECT_TRUE(arrival.apply);
    EXPECT_EQ(arrival.whole, cut.begin == 2 * kChunkBytes);
  }
  step.check_whole(kDense);
  EXPECT_FALSE(step.take_whole(kDense)) << "it is applied already";
}

TEST(StepAssembly, KeepsClippedAndSparseContributionsUntilTheEnd) {
  StepAssembly step = assembly();
  step.begin(0, true, Fate::kApply);
  EXPECT_FALSE(arrive(step, kDense, 0, kChunkBytes).apply);
  arrive(step, kDense, kChunkBytes, 3 * kChunkBytes / 2);
  step.check_whole(kDense);
  EXPECT_TRUE(step.take_whole(kDense));
  EXPECT_FALSE(step.take_whole(kDense)) << "only once";
  step.rows(kSparse, std::vector<std::int32_t>{10, 29});
  EXPECT_TRUE(arrive(step, kSparse, 0, 800).whole);
  step.check_whole(kSparse);
  EXPECT_TRUE(step.take_whole(kSparse));
}

TEST(StepAssembly, KeepsAContributionWhoseRuleAsksForAllOfItUntilTheEnd) {
  StepAssembly step({{.where = {.id = 0, .variable = 0, .first_row = 0, .rows = 5},
                      .variable = "w",
                      .whole = true,
                      .row_bytes = 400}});
  step.begin(0, false, Fate::kApply);
  EXPECT_FALSE(step.applies_chunks(0));
  EXPECT_FALSE(arrive(step, 0, 0, 1600).apply);
  EXPECT_TRUE(arrive(step, 0, 1600, 400).whole);
  step.check_whole(0);
  EXPECT_TRUE(step.take_whole(0));
}

TEST(StepAssembly, AContributionInSharedMemoryIsWholeAtOnce) {
  StepAssembly step = assembly();
  step.begin(0, false, Fate::kApply);
  const auto arrival = step.shared(kDense, 10 * kChunkBytes, 64, kRenewCopy, {});
  EXPECT_TRUE(arrival.apply && arrival.whole);
  EXPECT_EQ(step.part(kDense).wanted, WantedValues::kInItsCopy);
  EXPECT_TRUE(step.part(kDense).shared);
  EXPECT_TRUE(step.shared(kSparse, 400, 0, kSendValues, std::vector<std::int32_t>{12}).apply);
  EXPECT_EQ(step.part(kSparse).wanted, WantedValues::kNone) << "rows are asked for by their number";
}

TEST(StepAssembly, AWorkerThatPullsLaterIsNotAnswered) {
  StepAssembly step = assembly();
  step.begin(0, false, Fate::kApply);
  step.expect_chunk(kDense, 0, kChunkBytes, kPullsLater);
  EXPECT_TRUE(step.chunk(kDense, kChunkBytes).apply);
  step.expect_chunk(kDense, kChunkBytes, kChunkBytes, kPullsLater);
  EXPECT_EQ(step.part(kDense).wanted, WantedValues::kNone);
}

TEST(StepAssembly, OfAClippedStepSharedMemoryIsReadAtTheEnd) {
  StepAssembly step = assembly();
  step.begin(0, true, Fate::kApply);
  EXPECT_FALSE(step.shared(kDense, 10 * kChunkBytes, 0, kSendValues, {}).apply);
  EXPECT_EQ(step.part(kDense).wanted, WantedValues::kInFrames);
  EXPECT_TRUE(step.take_whole(kDense));
}

TEST(StepAssembly, AVariableWithoutElementsIsWholeWithoutAFrame) {
  StepAssembly step = assembly();
  step.begin(0, false, Fate::kApply);
  step.check_whole(kEmpty);
  EXPECT_EQ(step.part(kEmpty).expected, 0u);
}

TEST(StepAssembly, RejectsFramesThatCannotBe) {
  StepAssembly step = assembly();
  EXPECT_THAT(rejection([&] { step.check_step(0, MessageType::kChunk); }),
              HasSubstr("chunk of step 0 outside of it"));
  step.begin(0, false, Fate::kApply);
  EXPECT_THAT(rejection([&] { step.begin(1, false, Fate::kApply); }),
              HasSubstr("step 1 begins before step 0 has ended"));
  EXPECT_THAT(rejection([&] { step.expect_chunk(kDense, 4, 4); }), HasSubstr("chunk of 4 bytes"));
  EXPECT_THAT(rejection([&] { step.expect_chunk(kDense, 0, kChunkBytes + 4); }),
              HasSubstr("at most 1048576 are allowed"));
  EXPECT_THAT(rejection([&] { step.expect_chunk(kSparse, 0, 400); }),
              HasSubstr("without their ids"));
  EXPECT_THAT(rejection([&] { step.expect_chunk(kFrozen, 0, 4); }), HasSubstr("frozen"));
  EXPECT_THAT(rejection([&] { step.rows(kSparse, std::vector<std::int32_t>{9}); }),
              HasSubstr("row 9 of rows"));
  EXPECT_THAT(rejection([&] {
                step.rows(kSparse, std::vector<std::int32_t>{11, 11});
              }),
              HasSubstr("ascending"));
  EXPECT_THAT(rejection([&] { step.shared(kEmpty, 2, 4, 0, {}); }), HasSubstr("memory of 2"));
  EXPECT_THAT(rejection([&] { step.check_whole(kDense); }), HasSubstr("ends with 0 of"));
}

TEST(StepAssembly, AClippedStepIsAppliedAsItArrivesOnceItsScaleIsKnown) {
  StepAssembly step = assembly();
  step.begin(0, true, Fate::kApply);
  EXPECT_FALSE(step.applies_chunks(kDense));
  step.clip_known();
  EXPECT_TRUE(arrive(step, kDense, 0, kChunkBytes).apply);
  EXPECT_THAT(rejection([&] { step.clip_known(); }), HasSubstr("nobody waits for"));
  step.end();
  step.begin(1, true, Fate::kApply);
  arrive(step, kDense, 0, kChunkBytes);
  EXPECT_THAT(rejection([&] { step.clip_known(); }), HasSubstr("after a contribution"));
  step.end();
  step.begin(2, false, Fate::kApply);
  EXPECT_THAT(rejection([&] { step.clip_known(); }), HasSubstr("nobody waits for"));
}

// A contribution of 100 MB goes over links of 1 GB/s and is answered in frames. The function below
// returns the time at which the last value arrives.
enum class Clipped : std::uint8_t { kNo, kByKnownScale, kAtTheEnd };
double seconds_until_the_values_are_there(Clipped clipped) {
  constexpr std::size_t kBytes = 100'000'000;
  VirtualTime time;
  VirtualLink to_ps(time, 1e9), to_worker(time, 1e9);
  StepAssembly step({{.where = {.rows = 1}, .variable = "w", .row_bytes = kBytes}});
  step.begin(0, clipped != Clipped::kNo, Fate::kApply);
  if (clipped == Clipped::kByKnownScale) step.clip_known();
  ReplySchedule<Cut> replies;
  std::size_t arrived = 0;
  double last = 0;
  std::function<void()> send = [&] {
    while (auto reply = replies.next()) {
      const std::size_t bytes = reply->bytes;
      to_worker.send(
          bytes, 100us, [&, bytes] { replies.sent(bytes), send(); },
          [&, bytes] {
            arrived += bytes;
            last = time.seconds();
          });
    }
  };
  const auto answer = [&](Cut cut) {
    replies.push({.type = std::uint16_t(MessageType::kValues), .offset = cut.begin}, cut.size, cut);
    send();
  };
  for_contribution_frames({.bytes = kBytes}, [&](const ContributionFrame& frame) {
    to_ps.send(frame.payload_bytes, 100us, {}, [&, part = frame.part] {
      if (arrive(step, 0, part.begin, part.size).apply) answer(part);
    });
  });
  time.run();
  step.check_whole(0);
  if (step.take_whole(0)) {
    for (const Cut cut : byte_cuts(kBytes)) answer(cut);
  }
  time.run();
  EXPECT_EQ(arrived, kBytes);
  return last;
}

TEST(StepAssembly, AnswersTravelWhileTheContributionDoesUnlessItsScaleIsNotKnown) {
  EXPECT_NEAR(seconds_until_the_values_are_there(Clipped::kNo), 0.101, 0.002);
  EXPECT_NEAR(seconds_until_the_values_are_there(Clipped::kByKnownScale), 0.101, 0.002);
  EXPECT_NEAR(seconds_until_the_values_are_there(Clipped::kAtTheEnd), 0.200, 0.002);
}

}  // namespace
}  // namespace paceline
