// A ps allocates nothing for the messages that a worker sends in every step. This file has the
// allocation hook of the whole test program.
#include <gtest/gtest.h>

#include "base/allocation_hook.h"
#include "params/ps/ps_driver.h"
#include "params/ps/ps_peer.h"
#include "params/wire/fields.h"

namespace paceline {
namespace {

// Takes every frame at once, so that the speed of a reader has no effect.
class Sink : public Connection {
 public:
  void send(const FrameHeader& header, std::span<const std::byte>, void (*sent)(void*),
            void* context) override {
    ++frames;
    last_type = MessageType{header.type};
    if (is_numbered(last_type)) ++numbered;
    if (sent != nullptr) sent(context);
  }
  void send_copy(const FrameHeader& header, std::span<const std::byte> payload) override {
    send(header, payload, nullptr, nullptr);
  }
  void close(Deadline) override {}
  bool idle() const override { return true; }
  std::string peer() const override { return "worker:1"; }
  std::string_view kind() const override { return "inproc"; }
  const Traffic& traffic() const override { return traffic_; }

  int frames = 0, numbered = 0;
  MessageType last_type{};

 private:
  Traffic traffic_;
};

// A chief that speaks the protocol by hand, without a link, a thread or anything else that
// allocates.
class PsAllocations : public ::testing::TestWithParam<bool> {
 protected:
  PsAllocations() : driver_(options(), [] {}), receiver_(*driver_.accept(sink_)) {
    Hello hello;
    hello.role = "worker";
    hello.cluster_id = "test";
    send(MessageType::kHello, encode(hello));
    Declare declare{.variables = {{.name = "w", .shape = {30, 20}, .rule = Adam{}},
                                  {.name = "rows",
                                   .shape = {50, 4},
                                   .rule = Momentum{.learning_rate = 0.1f},
                                   .sparse = true}},
                    .pieces = {}};
    declare.pieces = place_variables(declare.variables, 1);
    send(MessageType::kDeclare, encode(declare));
    send(MessageType::kWriteEnd, encode_number(0));
    gradient_.resize(600 * sizeof(float));
  }

  static PsOptions options() {
    PsOptions options;
    options.spec = {{"ps:1"}, {"worker:1"}};
    options.task = {TaskId::Role::kPs, 0};
    options.cluster_id = "test";
    return options;
  }

  void send(MessageType type, std::span<const std::byte> payload, FrameHeader header = {}) {
    header.type = std::uint16_t(type);
    header.payload_bytes = std::uint32_t(payload.size());
    if (!payload.empty()) {
      const std::span<std::byte> place = receiver_.place_payload(header);
      std::copy(payload.begin(), payload.end(), place.begin());
      payload = place;
    }
    receiver_.on_frame(header, payload);
  }

  template <typename M>
  void send_written(MessageType type, const FrameHeader& header, const M& message) {
    encode(message, written_);
    send(type, written_, header);
  }

  // Sends the messages of a step. The number of rows of the second variable varies from step to
  // step.
  void step(std::uint64_t step) {
    const FrameHeader header{.step = step};
    const std::span<const std::int32_t> ids = std::span(ids_).first(1 + step % ids_.size());
    send_written(MessageType::kStepBegin, header, begin_);
    send(MessageType::kPull, std::as_bytes(std::span(pieces_).first(1)), header);
    send(MessageType::kPullRows, std::as_bytes(ids), {.id = 1, .step = step});
    send(MessageType::kChunk, gradient_, {.id = 0, .step = step});
    send(MessageType::kRowIds, std::as_bytes(ids), {.id = 1, .step = step});
    send(MessageType::kChunk, std::span(gradient_).first(ids.size() * 4 * sizeof(float)),
         {.id = 1, .step = step});
    end_.entries[1].next_rows.assign(ids.begin(), ids.end());
    send_written(MessageType::kStepEnd, header, end_);
    send(MessageType::kHandled, {}, {.step = std::uint64_t(sink_->numbered)});
  }

  const std::shared_ptr<Sink> sink_ = std::make_shared<Sink>();
  PsDriver driver_;
  Receiver& receiver_;
  std::vector<std::byte> gradient_, written_;
  const std::array<std::int32_t, 5> ids_ = {1, 7, 8, 30, 49};
  const std::array<std::uint32_t, 2> pieces_ = {0, 1};
  const StepBegin begin_{.clipped = GetParam(), .examples = 20, .learning_rates = {0.1f, 0.1f}};
  StepEnd end_{.clip_scale = 0.5f, .entries = {{0, true, {}}, {1, true, {}}}};
};

TEST_P(PsAllocations, AStepMakesNone) {
  if (!allocations_are_counted()) GTEST_SKIP() << "a sanitizer owns malloc";
  std::uint64_t next = 0;
  while (next < 10) step(next++);
  const AllocationCounts before = allocation_counts();
  const int frames = sink_->frames;
  while (next < 60) step(next++);
  EXPECT_EQ(allocation_counts().ours - before.ours, 0);
  EXPECT_EQ(driver_.applied(), 60);
  EXPECT_EQ(sink_->frames - frames, 50 * 6) << "values, rows, values, rows, handled, step_done";
  EXPECT_EQ(sink_->last_type, MessageType::kStepDone);
}

INSTANTIATE_TEST_SUITE_P(Clipped, PsAllocations, ::testing::Bool());

}  // namespace
}  // namespace paceline
