#include "kernels/device.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/real_clock.h"
#include "base/testing/error_of.h"
#include "kernels/device_kind.h"
#include "kernels/evaluate.h"
#include "kernels/sim/sim_timeline.h"
#include "kernels/traced_device.h"
#include "paceline/error.h"
#include "paceline/op.h"
#include "paceline/ops.h"

namespace paceline {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

TEST(DeviceKind, EachIsMadeByItsNameAndAnUnknownOneIsRefused) {
  RealClock clock;
  for (const DeviceKind& kind : device_kinds()) {
    if (kind.needs_hardware) continue;
    const auto device = make_device({.kind = std::string(kind.name), .sim_step_ms = 1}, clock);
    EXPECT_EQ(device->name(), std::string(kind.name) + ":0");
    EXPECT_FALSE(kind.shares_cores && kind.is_simulated);
  }
  EXPECT_EQ(find_device_kind("abacus"), nullptr);
  EXPECT_THROW(make_device({.kind = "abacus"}, clock), Error);
}

TEST(DeviceTest, AnUnknownKindIsRefused) {
  ManualClock clock;
  DeviceOptions options;
  options.kind = "gpu";
  const std::string message = error_of([&] { make_device(options, clock); });
  EXPECT_THAT(message, HasSubstr("--device"));
  EXPECT_THAT(message, HasSubstr("cpu, cuda, sim or naive"));
  EXPECT_THAT(message, HasSubstr("gpu"));
}

TEST(DeviceTest, NoThreadsAreRefused) {
  ManualClock clock;
  DeviceOptions options;
  options.threads = 0;
  EXPECT_THAT(error_of([&] { make_device(options, clock); }), HasSubstr("--threads"));
}

TEST(DeviceTest, ASimulatedDeviceThatTakesNoTimeIsRefused) {
  ManualClock clock;
  DeviceOptions options;
  options.kind = "sim";
  EXPECT_THAT(error_of([&] { make_device(options, clock); }), HasSubstr("--sim-step-ms"));
}

TEST(DeviceTest, NamesCarryTheIndex) {
  ManualClock clock;
  DeviceOptions options;
  options.index = 3;
  EXPECT_EQ(make_device(options, clock)->name(), "cpu:3");
  options.kind = "sim";
  options.sim_gflops = 1;
  EXPECT_EQ(make_device(options, clock)->name(), "sim:3");
}

TEST(DeviceTest, OthersMayUseItsThreads) {
  ManualClock clock;
  EXPECT_EQ(make_device({.threads = 3}, clock)->threads().threads(), 3);
  Timeline timeline(0, 1);
  const auto traced = make_traced_device(
      make_device({.kind = "sim", .threads = 2, .sim_step_ms = 1}, clock), timeline);
  EXPECT_EQ(traced->threads().threads(), 2);
}

Op doubled(bool with_kernel) {
  Op op;
  op.name = "doubled";
  op.infer = [](const OpInputs& in) -> std::vector<ValueType> { return {in.types[0]}; };
  op.no_gradient = "it is made for a test";
  op.cost = [](const Node&) { return Cost{5e6, 0}; };
  if (with_kernel) {
    op.kernel = [](const Node&, const KernelCall& call) {
      for (std::int64_t i = 0; i < call.outputs[0].shape.elements(); ++i) {
        call.outputs[0].as<float>()[i] = 2 * call.inputs[0].as<float>()[i];
      }
    };
  }
  return op;
}

TEST(DeviceTest, AnOpWithoutAKernelIsRefused) {
  OpRegistry ops = copy_of_builtin_ops();
  ops.add(doubled(false));
  Graph graph(ops);
  const Value y = graph.apply("doubled", {graph.input("x", {2}, DType::kFloat16)});
  RealClock clock;
  const auto cpu = make_device({}, clock);
  EXPECT_EQ(error_of([&] { cpu->make_kernel(y.node()); }),
            "[doubled] has no kernel on cpu for float16");
}

TEST(DeviceTest, AnOpFromOutsideRunsItsOwnKernel) {
  OpRegistry ops = copy_of_builtin_ops();
  register_op(ops, doubled(true));
  Graph graph(ops);
  const Value y = graph.apply("doubled", {graph.input("x", {2})});
  RealClock clock;
  for (const char* kind : {"cpu", "naive"}) {
    DeviceOptions options;
    options.kind = kind;
    const auto device = make_device(options, clock);
    const auto result =
        evaluate_graph({&y, 1}, {{"x", Tensor::of<float>({2}, {1.5f, -3})}}, *device);
    EXPECT_THAT(result[0].data<float>(), testing::ElementsAre(3, -6)) << kind;
  }
}

/// A custom op that doubles, range by range, and counts the ranges.
Op doubled_by_ranges(std::atomic<int>& ranges, int& threads) {
  Op op = doubled(true);
  op.kernel = [&](const Node&, const KernelCall& call) {
    threads = call.threads->count();
    call.parallel_for(call.outputs[0].shape.elements(), 100,
                      [&](std::int64_t begin, std::int64_t end) {
                        ++ranges;
                        EXPECT_TRUE(end - begin >= 100);
                        for (std::int64_t i = begin; i < end; ++i) {
                          call.outputs[0].as<float>()[i] += 2 * call.inputs[0].as<float>()[i];
                        }
                      });
  };
  return op;
}

TEST(DeviceTest, AKernelFromOutsideHasTheThreadsOfTheDevice) {
  std::atomic<int> ranges = 0;
  int threads = 0;
  OpRegistry ops = copy_of_builtin_ops();
  register_op(ops, doubled_by_ranges(ranges, threads));
  Graph graph(ops);
  const Value y = graph.apply("doubled", {graph.input("x", {1000})});
  Tensor x(DType::kFloat32, {1000});
  std::ranges::fill(x.data<float>(), 1.5f);
  RealClock clock;
  for (const int count : {1, 3}) {
    ranges = 0;
    const auto device = make_device({.threads = count}, clock);
    const Tensor result = evaluate_graph({&y, 1}, {{"x", x}}, *device)[0];
    EXPECT_TRUE(std::ranges::all_of(result.data<float>(), [](float v) { return v == 3; }));
    EXPECT_EQ(threads, count);
    EXPECT_EQ(ranges == 1, count == 1) << ranges;
  }
}

TEST(KernelCallTest, WithoutThreadsAllIsOneRange) {
  std::int64_t calls = 0, last = 0;
  const KernelCall call;
  call.parallel_for(7, 1, [&](std::int64_t begin, std::int64_t end) {
    calls += 1;
    last = end - begin;
  });
  call.parallel_for(0, 1, [&](std::int64_t, std::int64_t) { calls += 1; });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(last, 7);
}

/// A simulated device and the kernels of four ops: a reshape without FLOPs, and three ops of 1000
/// FLOPs.
class SimTest : public testing::Test {
 protected:
  void make(const DeviceOptions& options, double total_flops, Timeline* timeline = nullptr) {
    device_ = make_device(options, clock_);
    if (timeline != nullptr) device_ = make_traced_device(std::move(device_), *timeline);
    const Value x = graph_.input("x", {1000});
    const Value y = square(x);
    device_->begin_plan(total_flops);
    for (const Value& value : {reshape(x, {10, 100}), y, add(y, y), relu(x)}) {
      nodes_.push_back(&value.node());
      kernels_.push_back(device_->make_kernel(value.node()));
    }
  }
  void run(std::size_t kernel) {
    Tensor out(DType::kFloat32, nodes_[kernel]->outputs()[0].shape);
    const TensorView view = out.view();
    kernels_[kernel]->run({{}, {&view, 1}, {}, {}});
  }

  ManualClock clock_;
  Graph graph_;
  std::unique_ptr<Device> device_;
  std::vector<const Node*> nodes_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
};

DeviceOptions sim_options(double step_ms, double gflops) {
  DeviceOptions options;
  options.kind = "sim";
  options.sim_step_ms = step_ms;
  options.sim_gflops = gflops;
  return options;
}

TEST_F(SimTest, AStepTakesItsTimeSpreadByFlops) {
  make(sim_options(40, 0), 4000);
  run(0);
  device_->synchronize();
  EXPECT_EQ(clock_.now(), TimePoint());
  run(1);
  device_->synchronize();
  EXPECT_EQ(clock_.now(), TimePoint(milliseconds(10)));
  run(3);
  device_->synchronize();
  EXPECT_EQ(clock_.now(), TimePoint(milliseconds(20)));
}

TEST_F(SimTest, AStepWithoutFlopsIsSpreadEvenly) {
  make(sim_options(40, 0), 0);
  for (std::size_t i = 0; i < kernels_.size(); ++i) run(i);
  device_->synchronize();
  EXPECT_EQ(clock_.now(), TimePoint(milliseconds(40)));
}

TEST_F(SimTest, FlopsTakeTimeAtTheRate) {
  make(sim_options(0, 0.0005), 4000);  // 500 FLOPs per ms
  run(1);
  device_->synchronize();
  EXPECT_EQ(clock_.now(), TimePoint(milliseconds(2)));
}

TEST_F(SimTest, TheHostIsAheadOfTheWorkThatItQueues) {
  make(sim_options(40, 0), 4000);
  run(1);
  run(3);
  EXPECT_EQ(clock_.now(), TimePoint());
  device_->synchronize();
  EXPECT_EQ(clock_.now(), TimePoint(milliseconds(20)));
}

TEST_F(SimTest, ATimelineShowsWhenItRanEachKernel) {
  Timeline timeline(2, 3);
  timeline.begin_step(2);
  make(sim_options(40, 0), 4000, &timeline);
  run(1);
  run(3);
  timeline.begin_step(3);
  run(2);  // is not recorded
  device_->synchronize();
  std::vector<std::string> seen;
  for (const Timeline::Event& event : timeline.events()) {
    if (event.label->category != "on device") continue;
    EXPECT_EQ(timeline.name_of_thread(event.thread), "sim:0");
    EXPECT_EQ(event.step, 2);
    EXPECT_EQ(event.bytes, 4000);
    const auto ms = [](TimePoint time) { return time.time_since_epoch() / milliseconds(1); };
    seen.push_back(fmt::format("{} {}-{}", event.label->name, ms(event.begin), ms(event.end)));
  }
  EXPECT_THAT(seen, testing::ElementsAre("square 0-10", "relu 10-20"));
}

TEST_F(SimTest, WaitsForEventsOfOtherDevicesOnly) {
  make(sim_options(40, 0), 4000);
  run(1);
  device_->wait(device_->record());
  EXPECT_EQ(clock_.now(), TimePoint()) << "its own work is done in order anyway";
  const auto other = make_device(sim_options(40, 0), clock_);
  other->wait(device_->record());
  EXPECT_EQ(clock_.now(), TimePoint(milliseconds(10)));
}

TEST_F(SimTest, CopiesToMemoryOfItsOwnTakeTime) {
  DeviceOptions options = sim_options(40, 0);
  EXPECT_TRUE(make_device(options, clock_)->space().host());
  options.sim_copy_gbps = 2;
  make(options, 4000);
  EXPECT_FALSE(device_->space().host());
  const Tensor from = Tensor::of<float>({2}, {3, 4}), to(DType::kFloat32, {2});
  const Buffer memory = device_->allocate(20'000'000);
  const std::vector<std::byte> host(memory.size());
  device_->upload(memory.data(), host.data(), host.size());
  device_->synchronize();
  EXPECT_EQ(clock_.now(), TimePoint(milliseconds(10)));
  device_->upload(memory.data(), from.raw(), from.bytes());
  device_->download(to.raw(), memory.data(), to.bytes());
  EXPECT_EQ(to.data<float>()[1], 4);
  device_->synchronize();
  EXPECT_EQ(clock_.now(), TimePoint(milliseconds(10) + std::chrono::nanoseconds(8)));
  EXPECT_EQ(device_->copy_time(), milliseconds(10) + std::chrono::nanoseconds(8));
}

TEST_F(SimTest, ComputesWhereItIsToldTo) {
  DeviceOptions options = sim_options(40, 0);
  options.sim_compute = true;
  const auto device = make_device(options, clock_);
  const Value y = square(graph_.input("x", {2}));
  const auto result = evaluate_graph({&y, 1}, {{"x", Tensor::of<float>({2}, {3, 4})}}, *device);
  EXPECT_THAT(result[0].data<float>(), testing::ElementsAre(9, 16));
  EXPECT_EQ(clock_.now(), TimePoint(milliseconds(40)));
}

TEST_F(SimTest, AnEventHappensWhenTheWorkBeforeItIsDone) {
  make(sim_options(2, 0), 4000);
  run(1);
  const Event first = device_->record();
  run(3);
  first.synchronize();
  EXPECT_EQ(clock_.now(), TimePoint(Duration(std::chrono::microseconds(500))));
  device_->synchronize();
  EXPECT_EQ(clock_.now(), TimePoint(milliseconds(1)));
  EXPECT_TRUE(device_->record().empty()) << "nothing is left to wait for";
}

TEST(Device, TheHostsEventsHaveHappened) {
  ManualClock clock;
  const auto device = make_device({}, clock);
  EXPECT_TRUE(device->space().host());
  EXPECT_TRUE(device->record().empty());
  device->record().synchronize();
}

TEST_F(SimTest, WorkOfTheHostBetweenStepsIsNotHidden) {
  make(sim_options(40, 0), 4000);
  run(1);
  device_->synchronize();
  clock_.advance(milliseconds(5));
  run(1);
  device_->synchronize();
  EXPECT_EQ(clock_.now(), TimePoint(milliseconds(25)));
}

/// Sleeps a millisecond longer than it is asked to.
class LateClock : public ManualClock {
 public:
  void sleep_until(TimePoint time) override { ManualClock::sleep_until(time + milliseconds(1)); }
};

TEST(SimLateTest, ASleepThatEndsLateDoesNotAddUp) {
  LateClock clock;
  const auto device = make_device(sim_options(40, 0), clock);
  Graph graph;
  const Value y = square(graph.input("x", {4}));
  device->begin_plan(4);
  const auto kernel = device->make_kernel(y.node());
  Tensor out(DType::kFloat32, {4});
  const TensorView view = out.view();
  for (int i = 0; i < 100; ++i) {
    kernel->run({{}, {&view, 1}, {}, {}});
    device->synchronize();
  }
  EXPECT_EQ(clock.now(), TimePoint(milliseconds(4001)));
}

/// Sleeps 10 ms longer than it is asked to, but only once.
class OnceLateClock : public ManualClock {
 public:
  void sleep_until(TimePoint time) override {
    ManualClock::sleep_until(time + std::exchange(late_, milliseconds(0)));
  }

 private:
  milliseconds late_{10};
};

// After a wait that ended late, simulated steps catch up only by their own time. Time that the host
// spends between them still passes.
TEST(SimLateTest, CatchingUpHidesNoWaitOfTheHost) {
  OnceLateClock clock;
  SimTimeline timeline(clock);
  const auto step = [&] {
    timeline.run(milliseconds(1));
    timeline.synchronize();
  };
  step();  // ends at 1 ms; the host learns it at 11 ms
  step();
  clock.advance(milliseconds(9));
  for (int i = 0; i < 10; ++i) step();
  EXPECT_EQ(clock.now(), TimePoint(milliseconds(2 + 9 + 10)));
}

// A simulated worker must push as many rows as a real worker.
TEST(SimOutputTest, IdsAreComputed) {
  ManualClock clock;
  const auto device = make_device(sim_options(0, 1), clock);
  Graph graph;
  const Value flat = reshape(graph.input("ids", {2, 3}, DType::kInt32), {6});
  const Value rows = graph.input("rows", {6, 1});
  const Node& sums =
      graph.apply("sum_rows", {flat, rows}, {{"table_rows", std::int64_t{9}}}).node();
  const Value all[] = {sums.output(0), sums.output(1), sums.output(2)};
  const Tensor ids = Tensor::of<std::int32_t>({2, 3}, {4, 2, 4, 8, 2, 4});
  const Tensor nothing = Tensor::of<float>({6, 1}, {1, 2, 3, 4, 5, 6});
  const auto result = evaluate_graph(all, {{"ids", ids}, {"rows", nothing}}, *device);
  EXPECT_EQ(*result[2].data<std::int32_t>().data(), 3);
  EXPECT_THAT(result[0].data<std::int32_t>().first(3), testing::ElementsAre(2, 4, 8));
  EXPECT_THAT(result[1].data<float>(), testing::Each(0)) << "no sums are computed";
}

TEST(SimOutputTest, OtherIndicesAreZeroed) {
  ManualClock clock;
  const auto device = make_device(sim_options(0, 1), clock);
  Graph graph;
  const Value y = cast(graph.input("x", {3}), DType::kInt32);
  const auto kernel = device->make_kernel(y.node());
  const Tensor out = Tensor::of<std::int32_t>({3}, {7, 8, 9});
  const TensorView view = out.view();
  kernel->run({{}, {&view, 1}, {}, {}});
  EXPECT_THAT(out.data<std::int32_t>(), testing::ElementsAre(0, 0, 0));
}

/// Fills a float32 output with sevens, runs a kernel on it that only takes time, and returns it.
Tensor left_of_sevens(std::int64_t size) {
  ManualClock clock;
  const auto device = make_device(sim_options(0, 1), clock);
  Graph graph;
  const auto kernel = device->make_kernel(square(graph.input("x", {size})).node());
  Tensor out(DType::kFloat32, {size});
  std::ranges::fill(out.data<float>(), 7.0f);
  const TensorView view = out.view();
  kernel->run({{}, {&view, 1}, {}, {}});
  return out;
}

TEST(SimOutputTest, FewNumbersAreZeroed) {
  EXPECT_THAT(left_of_sevens(1).data<float>(), testing::Each(0));
  EXPECT_THAT(left_of_sevens(256).data<float>(), testing::Each(0));
}

// Zeroing a large output would take time, so a simulated kernel leaves the output as it was.
TEST(SimOutputTest, ManyNumbersAreLeftAsTheyWere) {
  EXPECT_THAT(left_of_sevens(257).data<float>(), testing::Each(7));
}

}  // namespace
}  // namespace paceline
