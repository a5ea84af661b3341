#include "params/wire/save_messages.h"

#include <gtest/gtest.h>

#include "paceline/error.h"
#include "params/wire/task_state.h"

namespace paceline {
namespace {

// Checks that every shorter payload, and a longer one, is refused.
template <typename Decode>
void expect_exact(std::vector<std::byte> bytes, Decode&& decode) {
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(decode(std::span(bytes).first(size)), Error) << size;
  }
  bytes.push_back(std::byte{0});
  EXPECT_THROW(decode(bytes), Error);
}

TEST(SaveMessages, ComeBackAsTheyWere) {
  const SavedShard saved{"no room", 7, 8, 9, {{10, true}, {11, false}}, {{3, 5}, {8, 99}}};
  EXPECT_EQ(decode_saved_shard(encode(saved)), saved);
  expect_exact(encode(saved), decode_saved_shard);
  const FindFile find{"/out/token", "17"};
  EXPECT_EQ(decode_find_file(encode(find)), find);
  expect_exact(encode(find), decode_find_file);
  const Initialised initialised{30, 12};
  EXPECT_EQ(decode_initialised(encode(initialised)), initialised);
  expect_exact(encode(initialised), decode_initialised);
}

// The bytes must stay as docs/wire.md gives them.
TEST(SaveMessages, HaveTheBytesOfTheirFormat) {
  const auto text = [](std::initializer_list<int> bytes) {
    std::vector<std::byte> all;
    for (const int byte : bytes) all.push_back(std::byte(byte));
    return all;
  };
  EXPECT_EQ(encode(SavedShard{"no", 7, 8, 9, {{10, true}}, {}}),
            text({2, 0, 'n', 'o', 7, 0, 0, 0,  0, 0, 0, 0, 8, 0, 0, 0, 9, 0, 0, 0, 0,
                  0, 0, 0,   1,   0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(encode(FindFile{"/o", "17"}), text({2, 0, '/', 'o', 2, 0, '1', '7'}));
}

TEST(SaveMessages, AnErrorIsCutToTheLongestText) {
  const SavedShard saved{std::string(70000, 'x'), 0, 0, 0, {}, {}};
  EXPECT_EQ(decode_saved_shard(encode(saved)).error, std::string(65535, 'x'));
}

TEST(TaskStateMessage, HasTheBytesOfItsFormat) {
  const TaskState state{.worker = 2, .step = 3, .position = {{{"b", 4}}, {}}, .local = {}};
  const std::vector<int> bytes = {2,   0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0,
                                  'b', 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  std::vector<int> encoded;
  for (const std::byte byte : encode(state)) encoded.push_back(int(byte));
  EXPECT_EQ(encoded, bytes);
}

TEST(TaskStateMessage, ComesBackAsItWas) {
  TaskState state{
      .worker = 2, .step = 41, .position = {{{"batch", 3}}, {{"cost", 0.1}}}, .local = {}};
  state.local.push_back({"train/h", Tensor::of<float>({2, 2}, {1, 2, 3, 4})});
  const TaskState back = decode_task_state(encode(state));
  EXPECT_EQ(back.worker, 2);
  EXPECT_EQ(back.step, 41);
  EXPECT_EQ(back.position, state.position);
  ASSERT_EQ(back.local.size(), 1U);
  EXPECT_EQ(back.local[0].name, "train/h");
  EXPECT_EQ(back.local[0].tensor.shape(), (Shape{2, 2}));
  EXPECT_EQ(back.local[0].tensor.data<float>()[3], 4);
  expect_exact(encode(state), decode_task_state);
}

}  // namespace
}  // namespace paceline
