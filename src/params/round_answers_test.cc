// Tests what a worker hears when a round ends, and in which order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "params/testing/raw_peer.h"
#include "params/wire/round_messages.h"

namespace paceline {
namespace {

class RoundAnswers : public RoundsPsTest {
 protected:
  RoundAnswers() : RoundsPsTest(1) {}
};

// The worker may reuse the memory of its contributions, and begin the next step, while values still
// travel.
TEST_F(RoundAnswers, AWorkerHearsThatItsStepIsHandledAndDoneBeforeTheValues) {
  initialise();
  auto peer = member_of_rounds();
  std::vector<std::byte> bytes;
  encode(StepBegin{.examples = 1, .round = 0, .learning_rates = {1, 1}}, bytes);
  peer->send(MessageType::kStepBegin, bytes, {.step = 0});
  peer->send(MessageType::kChunk, std::vector<std::byte>(12 * sizeof(float)), {.id = 0});
  peer->send(MessageType::kStepEnd, step_end(0, true), {.step = 0});
  ASSERT_TRUE(peer->wait_for(MessageType::kValues));
  const std::vector<MessageType> types = peer->types();
  const auto at = [&](MessageType type) { return std::ranges::find(types, type); };
  EXPECT_LT(at(MessageType::kHandled), at(MessageType::kStepDone));
  EXPECT_LT(at(MessageType::kStepDone), at(MessageType::kValues));
}

}  // namespace
}  // namespace paceline
