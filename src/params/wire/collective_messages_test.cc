#include "params/wire/collective_messages.h"

#include <gtest/gtest.h>

#include "params/wire/control_message.h"

namespace paceline {
namespace {

template <typename T>
void expect_same_again(MessageType type, const T& body) {
  const std::vector<std::byte> bytes = encode(body);
  EXPECT_EQ(decode_control(type, bytes, 0).as<T>(), body) << name_of(type);
  EXPECT_TRUE(is_control_for_peer(type));
  const std::span<const std::byte> shorter(bytes.data(), bytes.size() - 1);
  EXPECT_THROW(decode_control(type, shorter, 0), Error) << name_of(type);
}

TEST(CollectiveMessages, AreTheSameAfterTheWire) {
  expect_same_again(MessageType::kGroupStatus, GroupStatus{.standing = Standing::kRetired,
                                                           .epoch = 7,
                                                           .step = 12,
                                                           .members = {0, 2},
                                                           .connected = {0, 1, 2},
                                                           .done = true,
                                                           .ended = true,
                                                           .wants_values = true,
                                                           .cut_off = true,
                                                           .counted = 11});
  expect_same_again(MessageType::kPropose, Proposal{.epoch = 8, .members = {1, 3}});
  expect_same_again(MessageType::kAgree,
                    Agreement{.epoch = 8, .highest = 9, .step = 4, .counted = 3, .in_place = true});
  expect_same_again(MessageType::kForm, Formation{.epoch = 8,
                                                  .members = {1, 3},
                                                  .step = 4,
                                                  .counted = 3,
                                                  .source = 1,
                                                  .lacking = {3},
                                                  .in_place = true,
                                                  .own_steps = {5, 6, 7, 8},
                                                  .unused = {{3, 5}, {9, 100}},
                                                  .held = {{{3, 4}}, {}}});
  expect_same_again(MessageType::kCommit, StepMark{.epoch = 8, .step = 4});
}

// The bytes must stay as docs/wire.md gives them.
TEST(CollectiveMessages, ABeginHasTheDocumentedBytes) {
  const CollectiveBegin begin{.epoch = 0x2ffff,
                              .step = 7,
                              .examples = 128,
                              .own_step = 5,
                              .made = 3,
                              .training = 0xa1b2c3d4e5f60718,
                              .records = {{32, 64}}};
  const std::vector<unsigned char> documented = {
      0xff, 0xff, 0x02, 0, 0,    0, 0, 0, 0x07, 0,    0,    0,    0,    0,    0,    0,     //
      0x80, 0,    0,    0, 0,    0, 0, 0, 0x05, 0,    0,    0,    0,    0,    0,    0,     //
      0x03, 0,    0,    0, 0,    0, 0, 0, 0x18, 0x07, 0xf6, 0xe5, 0xd4, 0xc3, 0xb2, 0xa1,  //
      0x01, 0,    0,    0, 0x20, 0, 0, 0, 0,    0,    0,    0,    0x40, 0,    0,    0,
      0,    0,    0,    0};
  const std::vector<std::byte> bytes = encode(begin);
  ASSERT_EQ(bytes.size(), documented.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(unsigned(bytes[i]), unsigned(documented[i])) << "byte " << i;
  }
  expect_same_again(MessageType::kCollectiveBegin, begin);
}

}  // namespace
}  // namespace paceline
