// Tests that, whatever a peer says in synchronous rounds, the ps at worst ends that peer's
// connection, and rounds go on.
#include <gtest/gtest.h>

#include <functional>

#include "params/testing/raw_peer.h"
#include "params/wire/round_messages.h"

namespace paceline {
namespace {

struct RoundAttack {
  std::string name, reason;  // `reason`: why the ps ends the connection
  std::function<void(RawPeer&)> send;
};

/// The chief continues with rounds of its own contributions once worker:1 has gone.
class HostileInRounds : public RoundsPsTest, public ::testing::WithParamInterface<RoundAttack> {};

TEST_P(HostileInRounds, EndsOnlyItsOwnConnection) {
  initialise();
  auto peer = member_of_rounds();
  GetParam().send(*peer);
  EXPECT_TRUE(peer->wait_closed());
  EXPECT_TRUE(wait_said(GetParam().reason)) << said();
  StepDriver driver(*chief_, false);
  EXPECT_EQ(driver.step(), 1);
  EXPECT_EQ(driver.step(), 2);
}

void begin(RawPeer& peer, std::uint64_t step, std::int64_t round, std::int64_t examples = 1) {
  std::vector<std::byte> bytes;
  encode(StepBegin{.examples = examples, .round = round, .learning_rates = {1, 1}}, bytes);
  peer.send(MessageType::kStepBegin, bytes, {.step = step});
}

std::vector<RoundAttack> round_attacks() {
  return {
      {"of_another_round", "to round 5, and 0 is open", [](RawPeer& peer) { begin(peer, 0, 5); }},
      {"of_fewer_than_no_examples", "of -1 examples", [](RawPeer& peer) { begin(peer, 0, 0, -1); }},
      {"before_its_last_is_applied", "a step before the round of the last one is applied",
       [](RawPeer& peer) {
         begin(peer, 0, 0);
         peer.send(MessageType::kStepEnd, step_end(0, false), {.step = 0});
         begin(peer, 1, 0);
       }},
      {"twice", "a step before the round of the last one is applied",
       [](RawPeer& peer) {
         begin(peer, 0, 0);
         peer.send(MessageType::kStepEnd, step_end(0, false), {.step = 0});
         begin(peer, 0, 0);
       }},
      {"of_another_shape", "chunk of 65536 bytes at 0 of piece 0",
       [](RawPeer& peer) {
         begin(peer, 0, 0);
         peer.send(MessageType::kChunk, std::vector<std::byte>(1 << 16), {.id = 0});
       }},
      {"that_is_not_whole", "step 0 ends with 0 of",
       [](RawPeer& peer) {
         begin(peer, 0, 0);
         peer.send(MessageType::kStepEnd, step_end(0, true), {.step = 0});
       }},
      {"in_the_name_of_a_ps", "unexpected message whole",
       [](RawPeer& peer) { peer.send(MessageType::kWhole, encode(RoundContribution{})); }},
  };
}

INSTANTIATE_TEST_SUITE_P(Contributions, HostileInRounds, ::testing::ValuesIn(round_attacks()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace paceline
