// Tests what steps ask the ps tasks for, and which plans are refused.
#include "params/worker/ps_steps.h"

#include <gtest/gtest.h>

#include <atomic>

#include "net/wrapped/wrapped_link.h"
#include "params/testing/job_fixture.h"
#include "params/wire/message.h"
#include "params/worker/ps_store.h"

namespace paceline {
namespace {

constexpr VariableId kSparse = 0, kDense = 1, kFrozen = 2;
const std::vector<VariableSpec> kStepped = {
    {.name = "embedding", .shape = {90, 7}, .rule = Sgd{.learning_rate = 0.5f}, .sparse = true},
    {.name = "w", .shape = {601, 503}, .rule = Sgd{.learning_rate = 0.5f}},
    {.name = "fixed", .shape = {5, 2}, .trained = false}};

class PsStepsTest : public JobFixture {};

TEST_F(PsStepsTest, APlanThatUpdatesAFrozenVariableIsRefused) {
  make_spec(1, 1);
  start_all_ps();
  const auto store = std::move(join_all(kStepped).front());
  EXPECT_NE(store->bind({.uses = {{.variable = kFrozen}}}, 0), nullptr);
  try {
    store->bind({.uses = {{.variable = kFrozen, .updated = true}}}, 0);
    FAIL() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_STREQ(error.what(), "[store] a plan updates the frozen variable fixed");
  }
  store->goodbye();
}

TEST_F(PsStepsTest, EvaluationSeesWhatWasReadAndTrainingGoesOn) {
  make_spec(2, 1);
  start_all_ps();
  const auto store = std::move(join_all(kStepped).front());
  store->write(initial_states(kStepped), 0);
  StepDriver driver(*store, false);
  driver.step();
  const auto evaluation = store->bind({.uses = {{.variable = kDense}, {.variable = kFrozen}}}, 0);
  const std::vector<float> rates(kStepped.size(), 0.0f);
  evaluation->begin_step(StepKind::kEvaluate, {}, {.learning_rates = rates});
  const TensorView seen = evaluation->need(kDense).view;
  const std::vector<float> value(seen.as<float>(), seen.as<float>() + seen.shape.elements());
  evaluation->end_step(1, {});
  EXPECT_EQ(value, everything(*store)[kDense]);
  const std::int64_t sent = store->account().bytes_sent;
  evaluation->begin_step(StepKind::kEvaluate, {}, {.learning_rates = rates});
  evaluation->need(kFrozen);
  evaluation->end_step(1, {});
  EXPECT_EQ(store->account().bytes_sent, sent) << "values were read: nothing is asked for";
  EXPECT_EQ(driver.step(), 2);
  store->goodbye();
}

/// Counts the rows that the worker asks its ps tasks for.
class RowCounter : public ForwardingConnection {
 public:
  RowCounter(std::shared_ptr<Connection> connection, std::atomic<std::size_t>& rows)
      : ForwardingConnection(std::move(connection)), rows_(rows) {}
  void send(const FrameHeader& header, std::span<const std::byte> payload, void (*sent)(void*),
            void* context) override {
    if (MessageType{header.type} == MessageType::kPullRows) {
      rows_ += payload.size() / sizeof(std::int32_t);
    }
    ForwardingConnection::send(header, payload, sent, context);
  }

 private:
  std::atomic<std::size_t>& rows_;
};

// The answer to end_step brings the rows that end_step asked for. Any other use of the store before
// the next step makes these rows stale.
TEST_F(PsStepsTest, NextRowsAreAskedForOnce) {
  make_spec(1, 1);
  start_all_ps();
  PsStoreOptions options = store_options(0);
  options.share_memory = false;
  std::atomic<std::size_t> asked{0};
  options.link_factory = [&](const LinkOptions& link) {
    return std::make_unique<WrappedLink>(
        link_factory()(link),
        LinkWrapping{.receiver =
                         [](Receiver& receiver, const std::string&) {
                           return std::make_unique<ForwardingReceiver>(receiver);
                         },
                     .connection =
                         [&](std::shared_ptr<Connection> connection, const std::string&) {
                           return std::make_shared<RowCounter>(std::move(connection), asked);
                         }});
  };
  const auto store = PsStore::join(options, kStepped);
  store->write(initial_states(kStepped), 0);
  const auto steps =
      store->bind({.uses = {{.variable = kSparse, .updated = false, .most_rows = 3}}}, 0);
  const std::vector<float> rates(kStepped.size(), 0.0f);
  const std::vector<std::int32_t> ids = {2, 50, 89}, others = {2, 50};
  const RowSet rows{kSparse, ids}, other_rows{kSparse, others};
  const auto asked_by_step = [&](const RowSet& now, const RowSet& next) {
    asked = 0;
    steps->begin_step(StepKind::kTrain, {&now, 1}, {.learning_rates = rates});
    EXPECT_EQ(steps->need(kSparse).view.as<float>()[50 * 7],
              initial_state(kStepped[kSparse], kSparse).value.data<float>()[50 * 7]);
    steps->end_step(1, {&next, 1}).global_step();
    return asked.load();
  };
  EXPECT_EQ(asked_by_step(rows, rows), 3u);
  EXPECT_EQ(asked_by_step(rows, rows), 0u);
  EXPECT_EQ(asked_by_step(other_rows, rows), 2u);
  everything(*store);
  EXPECT_EQ(asked_by_step(rows, rows), 3u);
  store->write(initial_states(kStepped), 0);
  EXPECT_EQ(asked_by_step(rows, rows), 3u);
  EXPECT_EQ(asked_by_step(rows, rows), 0u);
  store->goodbye();
}

}  // namespace
}  // namespace paceline
