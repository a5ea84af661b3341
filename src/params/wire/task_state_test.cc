#include "params/wire/task_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "paceline/error.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

TaskState with_local(std::int64_t elements) {
  TaskState state{
      .worker = 1, .step = 7, .position = {{{"batch", 3}}, {{"cost", 0.5}}}, .local = {}};
  state.local.push_back({"train/h", Tensor(DType::kFloat32, {elements})});
  state.local.back().tensor.data<float>().back() = 2.5f;
  return state;
}

TEST(TaskState, IsPutTogetherFromItsFrames) {
  const std::vector<std::byte> bytes = encode(with_local(5'000'000));
  StateFrames frames;
  std::optional<std::vector<std::byte>> whole;
  int count = 0;
  for_state_frames(bytes, [&](std::uint16_t flags, std::span<const std::byte> frame) {
    EXPECT_LE(frame.size(), kStateFrameBytes);
    EXPECT_FALSE(whole);
    whole = frames.add(flags, frame);
    ++count;
  });
  ASSERT_TRUE(whole);
  EXPECT_EQ(count, 20);
  const TaskState state = decode_task_state(*whole);
  EXPECT_EQ(state.worker, 1);
  EXPECT_EQ(state.step, 7);
  EXPECT_EQ(state.position, with_local(1).position);
  ASSERT_EQ(state.local.size(), 1U);
  EXPECT_EQ(state.local[0].tensor.data<float>()[4'999'999], 2.5f);
  EXPECT_TRUE(frames.add(0, {})) << "the next one begins anew";
}

TEST(TaskState, IsLeftOutByNameWhenItIsTooLarge) {
  EXPECT_EQ(why_left_out(with_local(1000)), "");
  EXPECT_EQ(why_left_out(with_local(1000), 4000), "");
  EXPECT_THAT(why_left_out(with_local(1000), 3999),
              HasSubstr("the local variables of worker:1 are not saved: they have 4,000 bytes, "
                        "train/h alone 4,000, and no more than 3,999 can be sent"));
}

TEST(TaskState, WithoutEndIsRefused) {
  StateFrames frames(1000);
  const std::vector<std::byte> frame(400);
  EXPECT_FALSE(frames.add(kStateGoesOn, frame));
  EXPECT_FALSE(frames.add(kStateGoesOn, frame));
  EXPECT_THROW(frames.add(kStateGoesOn, frame), Error);
}

}  // namespace
}  // namespace paceline
