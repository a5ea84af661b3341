// Tests that the account attributes the time that a slow link adds to a worker's step to one share,
// exact to the nanosecond.
#include <gtest/gtest.h>

#include "exec/executor.h"
#include "net/wrapped/slow_link.h"
#include "paceline/minimize.h"
#include "paceline/ops.h"
#include "params/testing/job_fixture.h"

namespace paceline {
namespace {

/// A link without threads of its own: frames that arrive wait until some thread waits in the link.
class WaitersLink : public Link {
 public:
  /// `link` has no threads.
  explicit WaitersLink(std::unique_ptr<Link> link) : link_(std::move(link)) {}

  std::string kind() const override { return link_->kind(); }
  std::string listen(const std::string& address, Acceptor acceptor) override {
    return link_->listen(address, std::move(acceptor));
  }
  std::shared_ptr<Connection> connect(const std::string& address, Receiver& receiver,
                                      Deadline deadline) override {
    return link_->connect(address, receiver, deadline);
  }
  bool help() override { return link_->help(); }
  bool wait(const EventFd& /*wake*/, Deadline deadline,
            const std::function<bool()>& come) override {
    for (; !come(); link_->help()) {
      if (deadline.passed()) return false;
    }
    return true;
  }

 private:
  const std::unique_ptr<Link> link_;
};

class LinkAccountTest : public JobFixture {
 protected:
  LinkAccountTest() {
    const Value x = graph_.input("x", {4});
    training_ = minimize(reduce_mean(square(mul(x, graph_.variable("w", {4})))), Sgd{0.5f});
    const Graph* graphs[] = {&graph_};
    specs_ = variable_specs(graphs, &training_);
    device_ = make_device({.kind = "cpu", .threads = 1}, clock_);
    PlanRequest request;
    request.graph = &graph_;
    request.training = &training_;
    plan_ = make_plan(request, specs_, *device_);
    locals_ = std::make_unique<LocalMemory>(graph_, *device_);
  }

  /// Joins a worker to one ps. Each frame that the worker receives takes the time `added` on the
  /// clock. Only the thread that waits for frames handles them.
  std::unique_ptr<PsStore> join(Duration added) {
    make_spec(1, 1);
    start_all_ps();
    PsStoreOptions options = store_options(0);
    options.link_factory = [this, added](LinkOptions link) {
      link.threads = 0;
      return slow_link(std::make_unique<WaitersLink>(link_factory()(link)), clock_, added);
    };
    auto store = PsStore::join(options, specs_);
    store->write(initial_states(specs_), 0);
    return store;
  }

  void run(ParameterStore& store, int steps) {
    Executor executor(*plan_, store.bind(plan_->binding, plan_->clip_norm), *locals_, *device_,
                      account_);
    const float rates[] = {0.5f};
    account_.reset();
    for (std::int64_t step = 0; step < steps; ++step) {
      executor.run({.learning_rates = rates, .examples = 1, .identity = {.step = step}});
    }
    account_.change_to(Activity::kOther);
  }

  ManualClock clock_;
  StepAccount account_{clock_};
  Graph graph_;
  Training training_;
  std::vector<VariableSpec> specs_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Plan> plan_;
  std::unique_ptr<LocalMemory> locals_;
};

TEST_F(LinkAccountTest, WhatALinkAddsIsPull) {
  constexpr Duration kAdded = std::chrono::milliseconds(7);
  const auto store = join(kAdded);
  const TimePoint began = clock_.now();
  run(*store, 5);
  const Duration passed = clock_.now() - began;
  EXPECT_GE(passed, 5 * kAdded);  // one reply a step, at least
  EXPECT_EQ(account_.spent(Activity::kPull), passed);
  EXPECT_EQ(account_.total(), passed);
  store->goodbye();
}

TEST_F(LinkAccountTest, ALinkThatAddsNothingLeavesNoShare) {
  const auto store = join(Duration(0));
  run(*store, 5);
  EXPECT_EQ(account_.total(), Duration(0));
  store->goodbye();
}

}  // namespace
}  // namespace paceline
