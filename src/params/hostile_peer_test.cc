// Tests that, whatever a peer says, the ps at worst ends that peer's connection.
#include <gtest/gtest.h>

#include <functional>

#include "base/philox.h"
#include "params/testing/raw_peer.h"

namespace paceline {
namespace {

struct Attack {
  std::string name, reason;  // `reason`: why the ps ends the connection
  std::function<void(RawPeer&)> send;
};

class HostilePeer : public PsTest, public ::testing::WithParamInterface<Attack> {};

TEST_P(HostilePeer, EndsOnlyItsOwnConnection) {
  initialise();
  auto peer = GetParam().name.starts_with("stranger") ? stranger() : member();
  GetParam().send(*peer);
  EXPECT_TRUE(peer->wait_closed());
  EXPECT_TRUE(wait_said(GetParam().reason)) << said();
  expect_still_serving();
}

// The peer asks for a copy of one piece four million times, and takes no answer.
TEST_F(PsTest, ThrowsOffAPeerThatLetsAnswersPileUp) {
  initialise();
  auto peer = member();
  peer->set_deaf(true);
  peer->send(MessageType::kPull, std::vector<std::byte>(kMaxControlBytes), {.flags = kIntoCopy});
  EXPECT_TRUE(wait_said("it reads too slowly"));
  peer->set_deaf(false);
  EXPECT_TRUE(peer->wait_closed());
  expect_still_serving();
}

std::vector<std::byte> words(std::initializer_list<std::uint32_t> values) {
  const auto bytes = std::as_bytes(std::span(values.begin(), values.size()));
  return {bytes.begin(), bytes.end()};
}

using Say = std::function<void(RawPeer&)>;

Say chunk(std::uint32_t id, std::uint64_t offset, std::size_t bytes) {
  return [=](RawPeer& peer) {
    peer.send(MessageType::kStepBegin, step_begin(true), {.step = 0});
    peer.send(MessageType::kChunk, std::vector<std::byte>(bytes), {.id = id, .offset = offset});
  };
}

Say rows(std::initializer_list<std::uint32_t> ids) {
  return [ids = words(ids)](RawPeer& peer) {
    peer.send(MessageType::kStepBegin, step_begin(), {.step = 0});
    peer.send(MessageType::kRowIds, ids, {.id = 1});
  };
}

Say lies_at(std::uint32_t id, std::uint64_t offset, const std::vector<std::byte>& rows,
            int times = 1) {
  return [=](RawPeer& peer) {
    peer.share(0, 60);
    peer.send(MessageType::kStepBegin, step_begin(), {.step = 0});
    for (int i = 0; i < times; ++i) {
      peer.send(MessageType::kContribution, rows, {.id = id, .offset = offset});
    }
  };
}

Say message(MessageType type, const std::vector<std::byte>& payload, FrameHeader header = {}) {
  return [=](RawPeer& peer) { peer.send(type, payload, header); };
}

void say_at_random(RawPeer& peer) {
  for (std::uint64_t i = 0; i < 200; ++i) {
    const PhiloxBlock random = philox(3, i, 0);
    peer.send(MessageType{std::uint16_t(4 + random[0] % 29)},
              words({random[1], random[2], random[3]}), {.id = random[1] % 3});
  }
}

std::vector<Attack> attacks_before_a_handshake() {
  return {
      {"stranger_chunk_before_hello", "chunk of 48 bytes before a hello",
       message(MessageType::kChunk, std::vector<std::byte>(48))},
      {"stranger_pull_before_hello", "pull of 4 bytes before a hello",
       message(MessageType::kPull, words({0}))},
      {"stranger_empty_frame", "goodbye before a hello", message(MessageType::kGoodbye, {})},
      {"stranger_torn_hello", "bad message 'hello'",
       message(MessageType::kHello, words({kProtocolVersion, 1}))},
      {"stranger_long_hello", "hello of 1048577 bytes",
       message(MessageType::kHello, std::vector<std::byte>(kMaxHelloBytes + 1))},
  };
}

std::vector<Attack> attacks_by_chunks() {
  return {
      {"chunk_outside_a_step", "chunk of step 0 outside of it",
       message(MessageType::kChunk, std::vector<std::byte>(48))},
      {"chunk_beyond_the_piece", "chunk of 52 bytes at 0 of piece 0", chunk(0, 0, 52)},
      {"chunk_at_a_wrong_offset", "chunk of 4 bytes at 4 of piece 0", chunk(0, 4, 4)},
      {"chunk_at_an_offset_that_wraps", "chunk of 8 bytes at 18446744073709551612",
       chunk(0, ~std::uint64_t{3}, 8)},
      {"chunk_of_half_a_float", "chunk of 6 bytes at 0", chunk(0, 0, 6)},
      {"chunk_of_no_bytes", "chunk of 0 bytes at 0", chunk(0, 0, 0)},
      {"chunk_of_an_unknown_piece", "piece 12345 is not here", chunk(12345, 0, 8)},
      {"chunk_of_rows_without_ids", "rows without their ids", chunk(1, 0, 8)},
      {"rows_out_of_range", "row 10 of embedding is not in piece 1", rows({3, 10})},
      {"rows_twice", "row 3 of embedding is not in piece 1, or not in ascending order",
       rows({3, 3})},
  };
}

std::vector<Attack> attacks_by_shared_memory() {
  return {
      {"stranger_shares_memory", "memory 0 is shared, unasked",
       [](RawPeer& peer) { peer.share(0, 60); }},
      {"memory_with_a_wrong_number", "memory 1 is shared, unasked",
       [](RawPeer& peer) { peer.share(1, 60); }},
      {"memories_without_end", "memory 64 is shared, unasked",
       [](RawPeer& peer) {
         for (std::uint32_t id = 0; id <= kMostSharedMemories; ++id) peer.share(id, 1);
       }},
      {"memory_without_end", "memory 0 is shared, more than contributions take: 1073741824 bytes",
       [](RawPeer& peer) { peer.share(0, std::size_t{1} << 30); }},
      {"memories_that_are_too_much_together", "memory 2 is shared, more than contributions take",
       [](RawPeer& peer) {
         for (std::uint32_t id = 0; id < 3; ++id) peer.share(id, 400'000);
       }},
      {"contribution_in_no_memory", "memory 1 was not shared",
       [](RawPeer& peer) {
         peer.send(MessageType::kStepBegin, step_begin(), {.step = 0});
         peer.send(MessageType::kContribution, {}, {.flags = kMemoryNumber});
       }},
      {"contribution_that_renews_no_copy", "a copy that was not asked for",
       [](RawPeer& peer) {
         peer.share(0, 60);
         peer.send(MessageType::kStepBegin, step_begin(), {.step = 0});
         peer.send(MessageType::kContribution, {}, {.flags = kRenewCopy});
       }},
      {"contribution_beyond_the_memory", "48 bytes of w at 16 of a memory of 60",
       lies_at(0, 16, {})},
      {"contribution_at_an_offset_that_wraps", "48 bytes of w at 18446744073709551612",
       lies_at(0, ~std::uint64_t{3}, {})},
      {"contribution_at_half_a_float", "48 bytes of w at 2 of a memory", lies_at(0, 2, {})},
      {"contribution_to_an_unknown_piece", "piece 12345 is not here", lies_at(12345, 0, {})},
      {"contribution_of_rows_to_a_dense_one", "rows of w, which is dense",
       lies_at(0, 0, words({1}))},
      {"contribution_of_rows_out_of_range", "row 10 of embedding is not in piece 1",
       lies_at(1, 0, words({3, 10}))},
      {"contribution_of_more_rows_than_memory", "64 bytes of embedding at 0 of a memory of 60",
       lies_at(1, 0, words({0, 1, 2, 3, 4, 5, 6, 7}))},
      {"contribution_that_comes_twice", "a second contribution to w", lies_at(0, 0, {}, 2)},
  };
}

std::vector<Attack> other_attacks() {
  return {
      {"unknown_type", "unexpected message unknown (999)", message(MessageType{999}, {})},
      {"unknown_flags", "message chunk has unknown flags: 0x8",
       [](RawPeer& peer) {
         peer.send(MessageType::kStepBegin, step_begin(true), {.step = 0});
         peer.send(MessageType::kChunk, std::vector<std::byte>(48), {.flags = 8, .id = 0});
       }},
      {"message_of_a_ps", "unexpected message values",
       message(MessageType::kValues, std::vector<std::byte>(48))},
      {"control_message_of_a_ps", "unexpected message job_state",
       message(MessageType::kJobState, words({1, 2, 3}))},
      {"second_declaration", "the variables are declared twice",
       message(MessageType::kDeclare, encode(good_declaration()))},
      {"second_hello", "a second hello", message(MessageType::kHello, encode(good_hello(1)))},
      {"step_end_without_the_contribution", "ends with 0 of 0 bytes for piece 0",
       [](RawPeer& peer) {
         peer.send(MessageType::kStepBegin, step_begin(), {.step = 0});
         peer.send(MessageType::kStepEnd, step_end(0, true), {.step = 0});
       }},
      {"step_end_without_a_step", "the end of step 0, which has not begun",
       message(MessageType::kStepEnd, step_end(0, false))},
      {"pull_of_an_unknown_piece", "piece 7 is not here", message(MessageType::kPull, words({7}))},
      {"copy_of_an_unknown_piece", "piece 7 is not here",
       message(MessageType::kPull, words({7}), {.flags = kIntoCopy})},
      {"next_of_an_unknown_piece", "piece 7 is not here",
       message(MessageType::kPullNext, {}, {.id = 7})},
      {"pull_rows_out_of_range", "rows of embedding are asked for that are not in piece 1",
       message(MessageType::kPullRows, words({99}), {.id = 1})},
      {"write_by_another_than_the_chief", "only the chief writes",
       message(MessageType::kWrite, words({1}), {.id = 0})},
      {"initialised_by_another_than_the_chief", "only the chief initialises",
       message(MessageType::kWriteEnd, words({9, 0}))},
      {"random_bytes", "unexpected message", say_at_random},
  };
}

std::vector<Attack> attacks() {
  std::vector<Attack> all;
  for (const auto& some : {attacks_before_a_handshake(), attacks_by_chunks(),
                           attacks_by_shared_memory(), other_attacks()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Attacks, HostilePeer, ::testing::ValuesIn(attacks()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace paceline
