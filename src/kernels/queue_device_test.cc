// Tests the test device with its own memory and queue: the order that it keeps, and the mistakes
// that it catches.
#include "kernels/testing/queue_device.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <string>

#include "kernels/evaluate.h"
#include "paceline/ops.h"

namespace paceline {
namespace {

using testing::HasSubstr;
using Floats = std::array<float, 4>;

class QueueDeviceTest : public testing::Test {
 protected:
  template <typename F>
  static std::string error_of(F&& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  RealClock clock_;
  QueueDevice device_{make_device({.kind = "naive"}, clock_)};
};

TEST_F(QueueDeviceTest, CopiesAreMadeInOrderAndWhenTheyAreWaitedFor) {
  const Buffer a = device_.allocate(sizeof(Floats)), b = device_.allocate(sizeof(Floats));
  const Floats one = {1, 2, 3, 4}, two = {5, 6, 7, 8};
  Floats first = {}, second = {};
  device_.upload(a.data(), one.data(), sizeof(one));
  device_.copy(b.data(), a.data(), sizeof(one));
  device_.upload(a.data(), two.data(), sizeof(two));
  device_.download(first.data(), b.data(), sizeof(first));
  const Event copied = device_.record();
  device_.download(second.data(), a.data(), sizeof(second));
  EXPECT_EQ(device_.done(), 0u) << "nobody has waited";
  EXPECT_NE(first[0], first[0]) << "not a number until the copy is made";
  copied.synchronize();
  EXPECT_EQ(first, one);
  EXPECT_EQ(device_.done(), 4u) << "what was called after the event";
  device_.synchronize();
  EXPECT_EQ(second, two);
}

TEST_F(QueueDeviceTest, AnotherDeviceWaitsForItsEvent) {
  const Buffer memory = device_.allocate(sizeof(Floats));
  Floats floats = {};
  device_.download(floats.data(), memory.data(), sizeof(floats));
  make_device({.kind = "naive"}, clock_)->wait(device_.record());
  EXPECT_EQ(floats, Floats{}) << "allocated memory is zero";
}

TEST_F(QueueDeviceTest, TheHostCannotReadItsMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Buffer memory = device_.allocate(64);
  EXPECT_DEATH(
      {
        const volatile std::byte* const byte = memory.data();
        [[maybe_unused]] const std::byte read = *byte;
      },
      "");
}

TEST_F(QueueDeviceTest, AnUploadsSourceThatChangesTooEarlyIsAnError) {
  const Buffer memory = device_.allocate(sizeof(Floats));
  Floats floats = {1, 2, 3, 4};
  device_.upload(memory.data(), floats.data(), sizeof(floats));
  floats[2] = 9;
  EXPECT_THAT(error_of([&] { device_.synchronize(); }), HasSubstr("changed before"));
}

TEST_F(QueueDeviceTest, AKernelGetsItsMemoryOnly) {
  Graph graph;
  const Value y = square(graph.input("x", {4}));
  const std::unique_ptr<Kernel> kernel = device_.make_kernel(y.node());
  const Tensor host = Tensor::of<float>({4}, {1, 2, 3, 4});
  const Buffer memory = device_.allocate(host.bytes());
  const TensorView in = host.view(), out{memory.data(), in.dtype, in.shape};
  EXPECT_THAT(error_of([&] {
                kernel->run({{&in, 1}, {&out, 1}, {}, {}});
              }),
              HasSubstr("not the device's"));
  EXPECT_THAT(error_of([&] { device_.copy(memory.data() + 4, memory.data(), 16); }),
              HasSubstr("beyond"));
  EXPECT_THAT(error_of([&] { device_.download(memory.data(), memory.data(), 4); }),
              HasSubstr("not the host's"));
}

TEST_F(QueueDeviceTest, AGraphIsEvaluatedInItsMemory) {
  Graph graph;
  const Value x = graph.input("x", {2, 3});
  const Value y = add(matmul(x, graph.constant(Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6}))),
                      reshape(graph.constant(Tensor::of<float>({4}, {1, 2, 3, 4})), {2, 2}));
  const Feeds feeds = {{"x", Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6})}};
  const auto host = make_device({.kind = "naive"}, clock_);
  const Tensor expected = evaluate_graph({&y, 1}, feeds, *host)[0];
  const Tensor got = evaluate_graph({&y, 1}, feeds, device_)[0];
  EXPECT_TRUE(std::ranges::equal(got.data<float>(), expected.data<float>()));
}

}  // namespace
}  // namespace paceline
