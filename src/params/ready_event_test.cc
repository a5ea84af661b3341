// Every store waits for a contribution's event before it reads the contribution.
#include <gtest/gtest.h>

#include <algorithm>

#include "params/local/local_store.h"
#include "params/testing/job_fixture.h"
#include "params/worker/ps_store.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;

// A device that writes a contribution when someone waits for it.
class LateDevice : private Event::Source {
 public:
  explicit LateDevice(ManualClock& clock) : clock_(clock) {}
  Event write(const TensorView& place) {
    place_ = place;
    return {*this, 0};
  }

 private:
  void synchronize(std::uint64_t) override {
    std::fill_n(place_.as<float>(), place_.shape.elements(), 2.0f);
    clock_.advance(5ms);
  }
  ManualClock& clock_;
  TensorView place_;
};

class ReadyEventTest : public JobFixture {
 protected:
  void expect_waits(ParameterStore& store, bool clipped) {
    std::vector<VariableState> zeros;
    zeros.push_back({0, Tensor(DType::kFloat32, variables_[0].shape), {}});
    store.write(std::move(zeros), 0);
    const auto steps = store.bind({.uses = {{.variable = 0, .updated = true}}}, clipped);
    ManualClock clock;
    StepAccount account(clock);
    steps->count_waits(account);
    account.reset();
    LateDevice device(clock);
    const std::vector<float> rates(1, 0.0f);
    steps->begin_step(StepKind::kTrain, {}, {.learning_rates = rates, .examples = 1, .step = 0});
    steps->need(0);
    const TensorView place = steps->place(0).view;
    std::fill_n(place.as<float>(), place.shape.elements(), 1.0f);
    steps->ready(0, {}, device.write(place));
    EXPECT_EQ(steps->end_step(1, {}).global_step(), 1);
    EXPECT_EQ(everything(store)[0], std::vector<float>(600, 2.0f));
    account.change_to(Activity::kOther);
    EXPECT_EQ(account.spent(Activity::kCompute), 5ms) << "waiting for the device";
  }

  void expect_worker_waits(bool share_memory) {
    make_spec(1, 1);
    start_all_ps();
    PsStoreOptions options = store_options(0);
    options.share_memory = share_memory;
    const auto store = PsStore::join(options, variables_);
    expect_waits(*store, false);
    store->goodbye();
  }

  const std::vector<VariableSpec> variables_ = {{.name = "w", .shape = {600}, .rule = Add{}}};
};

TEST_F(ReadyEventTest, TheLocalStoreWaits) {
  for (const bool clipped : {false, true}) {
    const auto store = make_local_store(variables_, nullptr, nullptr);
    expect_waits(*store, clipped);
  }
}

TEST_F(ReadyEventTest, AWorkerOfAPsWaits) { expect_worker_waits(false); }

TEST_F(ReadyEventTest, OneThatSharesMemoryWithThePsToo) { expect_worker_waits(true); }

}  // namespace
}  // namespace paceline
