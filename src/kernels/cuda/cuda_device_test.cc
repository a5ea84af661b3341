// Tests a GPU device under the fake driver of tests/fakes: its memory, the order of its work, its
// results, and whether it reports planted faults.
#include "kernels/cuda/cuda_device.h"

#include <dlfcn.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/philox.h"
#include "base/temporary_folder.h"
#include "base/testing/error_of.h"
#include "kernels/cuda/cublas.h"
#include "kernels/cuda/cuda_compiler.h"
#include "kernels/cuda/cuda_library.h"
#include "kernels/cuda/cuda_source.h"
#include "kernels/cuda/cuda_work.h"
#include "kernels/cuda/cudnn.h"
#include "kernels/cuda/testing/cuda_test.h"
#include "kernels/evaluate.h"
#include "kernels/testing/op_cases.h"
#include "kernels/traced_device.h"
#include "paceline/error.h"
#include "paceline/op.h"
#include "paceline/ops.h"

namespace paceline {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(CudaTest, WorkIsDoneInOrderAndWhenItIsWaitedFor) {
  const auto gpu = device();
  std::vector<float> one = {1, 2, 3, 4}, two = {5, 6, 7, 8}, first(4), second(4);
  const Buffer a = gpu->allocate(16), b = gpu->allocate(16);
  gpu->upload(a.data(), one.data(), 16);
  gpu->copy(b.data(), a.data(), 16);
  const Event copied = gpu->record();
  gpu->download(first.data(), b.data(), 16);
  const Event read = gpu->record();
  gpu->download(second.data(), a.data(), 16);
  copied.synchronize();
  EXPECT_NE(first[0], first[0]) << "nobody has waited for it";
  read.synchronize();
  EXPECT_EQ(first, one);
  EXPECT_NE(second[0], second[0]);
  gpu->upload(a.data(), two.data(), 16);
  gpu->synchronize();
  EXPECT_EQ(second, one);
  copied.synchronize();  // the event happened long ago
}

TEST_F(CudaTest, NewMemoryIsZeroAndTheHostCannotTouchIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto gpu = device();
  std::vector<float> numbers(100, 7);
  const Buffer memory = gpu->allocate(400);
  gpu->download(numbers.data(), memory.data(), 400);
  gpu->synchronize();
  EXPECT_THAT(numbers, testing::Each(0));
  EXPECT_DEATH(
      {
        const volatile std::byte* const byte = memory.data();
        [[maybe_unused]] const std::byte read = *byte;
      },
      "");
}

// The fake driver reports memory that is pinned twice, or unpinned without having been pinned.
TEST_F(CudaTest, LargeMemoryOfTheHostIsPinnedWhileItIsThere) {
  constexpr std::size_t kBytes = std::size_t{8} << 20;
  const auto pinned = [] {
    static const auto bytes =
        reinterpret_cast<std::size_t (*)()>(::dlsym(RTLD_DEFAULT, "bytes_pinned_by_fake_gpu"));
    return bytes();
  };
  auto gpu = device(), other = device();
  const Buffer memory = gpu->allocate(kBytes);
  Buffer small(1000), kept(kBytes);
  {
    const Buffer large(kBytes);
    gpu->upload(memory.data(), large.data(), kBytes);
    gpu->synchronize();
    gpu->download(large.data(), memory.data(), kBytes);
    gpu->synchronize();
    other->upload(memory.data(), large.data() + 100, 1000);
    other->synchronize();
    gpu->upload(memory.data(), small.data(), 1000);
    EXPECT_EQ(pinned(), kBytes);
    gpu->download(kept.data(), memory.data(), kBytes);
    EXPECT_EQ(pinned(), 2 * kBytes);
  }
  EXPECT_EQ(pinned(), kBytes);
  gpu->synchronize();
}

TEST_F(CudaTest, ADeviceThatGoesUnpinsWhatItPinned) {
  constexpr std::size_t kBytes = std::size_t{8} << 20;
  const Buffer kept(kBytes);
  for (int again = 0; again < 2; ++again) {
    const auto gpu = device();
    const Buffer memory = gpu->allocate(kBytes);
    gpu->upload(memory.data(), kept.data(), kBytes);
    gpu->synchronize();
  }
}

TEST_F(CudaTest, CopiesFromAndToTheHostAreTimedOnceTheyAreMade) {
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  const auto gpu = device();
  const std::vector<std::byte> from(kBytes);
  std::vector<std::byte> to(kBytes);
  const Buffer a = gpu->allocate(kBytes), b = gpu->allocate(kBytes);
  gpu->synchronize();
  EXPECT_EQ(gpu->copy_time(), Duration(0));
  gpu->upload(a.data(), from.data(), kBytes);
  EXPECT_EQ(gpu->copy_time(), Duration(0)) << "the copy is not made yet";
  gpu->synchronize();
  const Duration up = gpu->copy_time();
  EXPECT_GT(up, Duration(0));
  gpu->copy(b.data(), a.data(), kBytes);
  gpu->synchronize();
  EXPECT_EQ(gpu->copy_time(), up) << "a copy on the GPU is not one from or to the host";
  gpu->download(to.data(), b.data(), kBytes);
  gpu->synchronize();
  EXPECT_GT(gpu->copy_time(), up);
}

TEST_F(CudaTest, ItsHardwareHasTheNameThatTheDriverGives) {
  const auto gpu = device();
  if (std::getenv("PACELINE_TEST_GPU") == nullptr) {
    EXPECT_EQ(gpu->hardware(), "Fake GPU");
  }
  EXPECT_NE(gpu->hardware(), "");
}

TEST_F(CudaTest, CountsTheKernelsThatItLaunches) {
  const auto gpu = device();
  const std::int64_t before = gpu->launches();
  const Tensor x = numbers({8, 8});
  Graph graph;
  const Value a = graph.input("a", {8, 8});
  const Value one = exp(a), product = matmul(a, a);
  evaluate_graph({&one, 1}, {{"a", x}}, *gpu);
  EXPECT_EQ(gpu->launches() - before, 1);
  evaluate_graph({&product, 1}, {{"a", x}}, *gpu);
  EXPECT_GE(gpu->launches() - before, 2) << "a library's call counts, too";
  const std::int64_t launched = gpu->launches();
  const Buffer memory = gpu->allocate(x.bytes());
  gpu->upload(memory.data(), x.raw(), x.bytes());
  gpu->synchronize();
  EXPECT_EQ(gpu->launches(), launched) << "a copy is no kernel";
}

TEST_F(CudaTest, ATimelineShowsWhenItRanKernelsAndMadeCopies) {
  Timeline timeline(0, 1);
  timeline.begin_step(0);
  const TimePoint begun = std::chrono::steady_clock::now();
  const auto gpu = make_traced_device(device(), timeline);
  Graph graph;
  const Value y = exp(graph.input("a", {1000}));
  const Feeds feeds = {{"a", numbers({1000})}};
  evaluate_graph({&y, 1}, feeds, *gpu);
  gpu->synchronize();
  std::vector<Timeline::Event> seen;
  for (const Timeline::Event& event : timeline.events()) {
    if (event.label->category == "on device") seen.push_back(event);
  }
  ASSERT_EQ(seen.size(), 3U);
  constexpr std::array<const char*, 3> kNames = {"copy to the device", "exp",
                                                 "copy from the device"};
  TimePoint before = begun;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i].label->name, kNames[i]);
    EXPECT_EQ(timeline.name_of_thread(seen[i].thread), "cuda:0");
    // The clocks are compared within microseconds; this leaves room for a busy machine.
    EXPECT_GE(seen[i].begin, before - std::chrono::milliseconds(i == 0 ? 50 : 0));
    EXPECT_GE(seen[i].end, seen[i].begin);
    before = seen[i].end;
  }
  EXPECT_LE(before, std::chrono::steady_clock::now() + std::chrono::milliseconds(50));
}

TEST_F(CudaTest, AnotherDeviceWaitsForItsEvents) {
  const EnvironmentVariable two("FAKE_CUDA_DEVICES", "2");
  const auto gpu = device(0), other = device(1);
  EXPECT_EQ(other->name(), "cuda:1");
  std::vector<float> numbers(4, 7);
  const Buffer memory = gpu->allocate(16);
  gpu->download(numbers.data(), memory.data(), 16);
  other->wait(gpu->record());
  EXPECT_THAT(numbers, testing::Each(0));
}

TEST_F(CudaTest, MemoryThatDoesNotFitIsRefusedWithWhoHoldsIt) {
  const EnvironmentVariable memory("FAKE_CUDA_MEMORY", std::to_string(64 << 20));
  const auto gpu = device();
  const Buffer held = gpu->allocate(48 << 20);
  EXPECT_EQ(
      error_of([&] { gpu->allocate(20 << 20); }),
      "[cuda:0] 20 MiB more do not fit in its memory: of 64 MiB this task holds 48, others "
      "hold 0 and 16 are left: a smaller --batch needs less, and nvidia-smi lists the others");
}

TEST_F(CudaTest, WhatIsMissingIsSaidWithARemedy) {
  const auto said = [] { return error_of([] { cuda_calls(); }); };
  {
    const EnvironmentVariable old("FAKE_CUDA_VERSION", "12040");
    EXPECT_EQ(
        said(),
        "--device cuda: the driver knows CUDA 12.4, and 13.0 is needed: install driver 580 or "
        "newer");
  }
  {
    const EnvironmentVariable none("FAKE_CUDA_DEVICES", "0");
    EXPECT_THAT(said(), AllOf(HasSubstr("finds no GPU"), HasSubstr("nvidia-smi")));
    EXPECT_THAT(cuda_devices_in_words(), HasSubstr("finds no GPU"));
  }
  {
    const EnvironmentVariable hidden("CUDA_VISIBLE_DEVICES", "");
    EXPECT_THAT(said(), HasSubstr("no GPU under CUDA_VISIBLE_DEVICES=: unset it"));
  }
  {
    const EnvironmentVariable stub("FAKE_CUDA_INIT", "34");
    EXPECT_THAT(said(), HasSubstr("LD_LIBRARY_PATH"));
  }
  {
    const EnvironmentVariable broken("FAKE_CUDA_INIT", "803");
    EXPECT_THAT(said(), HasSubstr("the driver does not start (fake error 803): nvidia-smi"));
  }
  EXPECT_EQ(said(), "");
  const EnvironmentVariable two("FAKE_CUDA_DEVICES", "2"), memory("FAKE_CUDA_MEMORY", "1073741824");
  EXPECT_EQ(cuda_devices_in_words(),
            "cuda:0 Fake GPU, 1024 MiB, sm_90\ncuda:1 Fake GPU, 1024 MiB, sm_90");
}

TEST_F(CudaTest, AGpuThatIsNotThereIsRefused) {
  EXPECT_EQ(error_of([&] { device(3); }),
            "--device cuda:3: this machine shows 1 GPU, of which the last is cuda:0");
  const EnvironmentVariable visible("CUDA_VISIBLE_DEVICES", "4,5");
  EXPECT_EQ(error_of([&] { device(2); }),
            "--device cuda:2: this machine shows 2 GPUs, of which the last is cuda:1 "
            "(CUDA_VISIBLE_DEVICES=4,5)");
}

// Returns ‖a − b‖ ÷ ‖b‖. For types other than float32, returns 0 if both are equal, else infinity.
double distance_of(const Tensor& a, const Tensor& b) {
  if (a.dtype() != DType::kFloat32) {
    return a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0 ? 0 : INFINITY;
  }
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.data<float>().size(); ++i) {
    const double x = double(a.data<float>()[i]), y = double(b.data<float>()[i]);
    difference += (x - y) * (x - y);
    size += y * y;
  }
  return difference == 0 ? 0 : std::sqrt(difference / size);
}

struct BuiltCase {
  explicit BuiltCase(const OpCase& c) {
    std::vector<Value> inputs;
    for (std::size_t i = 0; i < c.inputs.size(); ++i) {
      const std::string name = "input_" + std::to_string(i);
      inputs.push_back(graph.input(name, c.inputs[i].type.shape, c.inputs[i].type.dtype));
      feeds[name] = fill(c.inputs[i], false, random_key(i, c.op + c.label));
    }
    outputs = c.build(graph, inputs);
  }

  Graph graph;
  Feeds feeds;
  std::vector<Value> outputs;
};

// Runs with NVIDIA's libraries, whose own threads the test cannot see, and without them, in the
// orders in which one warp can run ahead of others.
TEST_F(CudaTest, EveryOpCaseOnGpuIsRight) {
  const auto gpu = device();
  CudaCalls few = calls_;
  few.cublas = {};
  few.cudnn = {};
  const auto alone = std::make_unique<CudaDevice>(few, 0, naive());
  const auto oracle = naive();
  for (const OpCase& c : all_op_cases()) {
    const BuiltCase built(c);
    const auto expected = evaluate_graph(built.outputs, built.feeds, *oracle);
    for (const char* const schedule : {"0", "4", "5"}) {
      const EnvironmentVariable set("FAKE_CUDA_SCHEDULE", schedule);
      CudaDevice& device = *(schedule == std::string("0") ? gpu : alone);
      const auto got = evaluate_graph(built.outputs, built.feeds, device);
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_LE(distance_of(got[i], expected[i]), c.tolerance)
            << c.op << " " << c.label << ", schedule " << schedule;
      }
    }
  }
  EXPECT_THAT(gpu->remarks(), testing::IsEmpty());
  EXPECT_THAT(alone->remarks(),
              ElementsAre(AllOf(HasSubstr("conv2d"), HasSubstr("matmul"),
                                HasSubstr("pip install nvidia-cublas nvidia-cudnn-cu13"))));
}

// With wrong strides, the fake library reports a read past the end of an operand, or has no plan.
TEST_F(CudaTest, AWrongLeadingDimensionIsFound) {
  const auto gpu = device();
  const Cublas cublas(calls_.cublas);
  const Tensor a = numbers({3, 4}, 1), b = numbers({4, 5}, 2);
  const Buffer on_a = gpu->allocate(a.bytes()), on_b = gpu->allocate(b.bytes()),
               c = gpu->allocate(60), workspace = gpu->allocate(1 << 12);
  gpu->upload(on_a.data(), a.raw(), a.bytes());
  gpu->upload(on_b.data(), b.raw(), b.bytes());
  gpu->synchronize();
  const auto at = [](const Buffer& buffer) { return CudaCalls::Address(buffer.data()); };
  CudaCalls::Stream* stream = nullptr;
  ASSERT_EQ(calls_.make_stream(&stream, CudaCalls::kNonBlocking), 0);
  const CudaProduct right{
      .m = 3, .n = 5, .k = 4, .a_row = 4, .a_column = 1, .b_row = 5, .b_column = 1};
  const auto multiply = [&](const CudaProduct& p) {
    const auto plan = cublas.plan(p, CudaEpilogue::kNone, {});
    if (plan == nullptr) return std::string("no plan");
    return error_of([&] { plan->run({at(c), at(on_a), at(on_b), at(workspace)}, stream); });
  };
  EXPECT_EQ(multiply(right), "");
  ASSERT_EQ(calls_.wait_for_stream(stream), 0);
  Tensor got(DType::kFloat32, {3, 5});
  gpu->download(got.raw(), c.data(), got.bytes());
  gpu->synchronize();
  Graph graph;
  const Value product = matmul(graph.input("a", {3, 4}), graph.input("b", {4, 5}));
  EXPECT_LE(distance_of(got, evaluate_graph({&product, 1}, {{"a", a}, {"b", b}}, *naive())[0]),
            1e-6);
  CudaProduct wrong = right;
  wrong.a_row = 5;  // makes the library read past the end
  EXPECT_THAT(multiply(wrong), HasSubstr("cuBLASLt: a product failed"));
  wrong = right;
  wrong.b_column = 3;  // less than the length of a column
  wrong.b_row = 1;
  EXPECT_EQ(multiply(wrong), "no plan");
}

// Without a plan for a product with a bias, the library computes the product, and a kernel adds the
// bias.
TEST_F(CudaTest, TheLibraryAddsABiasWhereItCan) {
  static std::vector<std::string> kernels;
  static const auto find = calls_.find_function;
  calls_.find_function = [](CudaCalls::Function** function, CudaCalls::Module* module,
                            const char* name) {
    kernels.emplace_back(name);
    return find(function, module, name);
  };
  Graph graph;
  const Value a = graph.input("a", {33, 7}), b = graph.input("b", {7, 5});
  const Value added = graph.input("bias", {5});
  const Feeds feeds = {
      {"a", numbers({33, 7}, 1)}, {"b", numbers({7, 5}, 2)}, {"bias", numbers({5}, 3)}};
  for (const bool relu : {false, true}) {
    const Value y = graph.apply("matmul_bias", {a, b, added},
                                {{"transpose_a", false}, {"transpose_b", false}, {"relu", relu}});
    const Tensor expected = evaluate_graph({&y, 1}, feeds, *naive())[0];
    const auto wrong = [&] {
      kernels.clear();
      return distance_of(evaluate_graph({&y, 1}, feeds, *device())[0], expected);
    };
    EXPECT_LE(wrong(), 1e-6);
    EXPECT_THAT(kernels, testing::IsEmpty());
    const EnvironmentVariable plain("FAKE_CUBLASLT_PLAIN", "1");
    EXPECT_LE(wrong(), 1e-6);
    EXPECT_THAT(kernels, ElementsAre("add_bias"));
  }
}

// The fake cuDNN offers engines with notes, the fastest first.
TEST_F(CudaTest, Tf32AndDeterminismChooseTheEngine) {
  static int compute = 0;
  static const auto make_product = calls_.cublas.make_product;
  calls_.cublas.make_product = [](CublasCalls::Product** product, int kind, int scale) {
    compute = kind;
    return make_product(product, kind, scale);
  };
  const auto note = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "note_of_fake_cudnn"));
  Graph graph;
  const Value y = conv2d(graph.input("x", {2, 3, 5, 5}), graph.input("w", {4, 3, 3, 3}));
  const Value product = matmul(graph.input("a", {3, 4}), graph.input("b", {4, 5}));
  const Feeds feeds = {{"x", numbers({2, 3, 5, 5})},
                       {"w", numbers({4, 3, 3, 3})},
                       {"a", numbers({3, 4})},
                       {"b", numbers({4, 5})}};
  const auto used = [&](const CudaOptions& options) {
    CudaDevice gpu(calls_, 0, naive(), options);
    evaluate_graph(std::array{y, product}, feeds, gpu);
    return std::pair(note(), compute);
  };
  EXPECT_EQ(used({}), std::pair(CudnnCalls::kNondeterministic, CublasCalls::kCompute));
  EXPECT_EQ(used({.tf32 = true}), std::pair(CudnnCalls::kTensorCore, CublasCalls::kTf32Compute));
  EXPECT_EQ(used({.deterministic = true}), std::pair(-1, CublasCalls::kCompute));
}

TEST_F(CudaTest, ACudnnThatComputesNothingIsNotUsed) {
  const EnvironmentVariable idle("FAKE_CUDNN_IDLE", "1");
  const auto gpu = device();
  Graph graph;
  const Value y = conv2d(graph.input("x", {2, 3, 5, 5}), graph.input("w", {4, 3, 3, 3}));
  const Feeds feeds = {{"x", numbers({2, 3, 5, 5})}, {"w", numbers({4, 3, 3, 3}, 2)}};
  const Tensor got = evaluate_graph({&y, 1}, feeds, *gpu)[0];
  EXPECT_LE(distance_of(got, evaluate_graph({&y, 1}, feeds, *naive())[0]), 2e-6);
  EXPECT_THAT(gpu->remarks(),
              ElementsAre(AllOf(HasSubstr("conv2d"), HasSubstr("by cuDNN was wrong"))));
}

TEST_F(CudaTest, ALibraryThatDoesNotStartIsNamed) {
  calls_.cublas.create = [](CublasCalls::Handle**) { return 1; };
  EXPECT_THAT(error_of([&] { device(); }), HasSubstr("cuBLASLt: its start failed"));
  calls_.cublas = {};
  calls_.cudnn.create = [](CudnnCalls::Handle**) { return 1; };
  EXPECT_THAT(error_of([&] { device(); }), HasSubstr("cuDNN: its start failed"));
}

TEST_F(CudaTest, EachScheduleGivesTheSameBits) {
  Graph graph;
  const Value x = graph.input("x", {1030}), y = graph.input("y", {1});
  const Value result = relu(sub(mul(x, x), y));
  const Feeds feeds = {{"x", numbers({1030})}, {"y", numbers({1}, 2)}};
  const Tensor expected = evaluate_graph({&result, 1}, feeds, *naive())[0];
  for (int schedule = 0; schedule < 6; ++schedule) {
    const EnvironmentVariable set("FAKE_CUDA_SCHEDULE", std::to_string(schedule));
    const Tensor got = evaluate_graph({&result, 1}, feeds, *device())[0];
    EXPECT_EQ(distance_of(got, expected), 0) << schedule;
  }
}

TEST_F(CudaTest, AViewOnGpuMayBeginInTheMiddleOfFour) {
  const auto gpu = device();
  Graph graph;
  const Value y = square(graph.input("x", {9}));
  const auto kernel = gpu->make_kernel(y.node());
  const Tensor from = numbers({12}), to(DType::kFloat32, {9});
  const Buffer in = gpu->allocate(48), out = gpu->allocate(36);
  gpu->upload(in.data(), from.raw(), 48);
  const TensorView input{in.data() + 4, DType::kFloat32, {9}};
  const TensorView output{out.data(), DType::kFloat32, {9}};
  kernel->run({{&input, 1}, {&output, 1}, {}, {}});
  gpu->download(to.raw(), out.data(), 36);
  gpu->synchronize();
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(to.data<float>()[i], from.data<float>()[i + 1] * from.data<float>()[i + 1]);
  }
}

TEST_F(CudaTest, AnOutputOnGpuMayLieWhereAnInputWas) {
  const auto gpu = device();
  Graph graph;
  const Value y = add(graph.input("a", {7}), graph.input("b", {7}));
  const auto kernel = gpu->make_kernel(y.node());
  const Tensor a = numbers({7}, 1), b = numbers({7}, 2), to(DType::kFloat32, {7});
  const Buffer first = gpu->allocate(28), second = gpu->allocate(28);
  gpu->upload(first.data(), a.raw(), 28);
  gpu->upload(second.data(), b.raw(), 28);
  const TensorView inputs[] = {{first.data(), DType::kFloat32, {7}},
                               {second.data(), DType::kFloat32, {7}}};
  kernel->run({inputs, {&inputs[1], 1}, {}, {}});
  gpu->download(to.raw(), second.data(), 28);
  gpu->synchronize();
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(to.data<float>()[i], a.data<float>()[i] + b.data<float>()[i]);
  }
}

// The host computes float64 ops on copies, and waits for these copies.
TEST_F(CudaTest, AWaitThatIsLeftOutIsFound) {
  Graph graph;
  const Value y = square(graph.input("a", {3}, DType::kFloat64));
  Tensor given(DType::kFloat64, {3});
  std::ranges::fill(given.data<double>(), 7);
  const Feeds feeds = {{"a", given}};
  const Tensor expected = evaluate_graph({&y, 1}, feeds, *naive())[0];
  EXPECT_EQ(distance_of(evaluate_graph({&y, 1}, feeds, *device())[0], expected), 0);
  calls_.wait_for_stream = [](CudaCalls::Stream*) { return 0; };
  EXPECT_FALSE(distance_of(evaluate_graph({&y, 1}, feeds, *device())[0], expected) == 0);
}

TEST_F(CudaTest, AnIndexOutOfRangeEndsTheNextWait) {
  const auto gpu = device();
  Graph graph;
  const Value logits = graph.input("logits", {3, 4});
  const Value labels = graph.input("labels", {3}, DType::kInt32);
  const Value loss = softmax_cross_entropy(logits, labels);
  Feeds feeds = {{"logits", numbers({3, 4})}, {"labels", Tensor(DType::kInt32, {3})}};
  const auto said = [&] { return error_of([&] { evaluate_graph({&loss, 1}, feeds, *gpu); }); };
  EXPECT_EQ(said(), "");
  feeds["labels"].data<std::int32_t>()[1] = 4;
  feeds["labels"].data<std::int32_t>()[2] = -1;
  EXPECT_THAT(said(), HasSubstr(": label 4 at 1 is outside [0,4)"));
  feeds["labels"].data<std::int32_t>()[1] = 0;
  EXPECT_THAT(said(), HasSubstr(": label -1 at 2 is outside [0,4)"));
  feeds["labels"].data<std::int32_t>()[2] = 0;
  EXPECT_EQ(said(), "");
}

/// Returns the outputs of a node whose inputs are given. If `i` is not negative, output 0 uses the
/// memory of input i.
std::vector<Tensor> outputs_of(const Node& node, const std::vector<Tensor>& inputs, int i,
                               CudaDevice& gpu, SumExchange* exchange = nullptr) {
  std::vector<Buffer> memory;
  std::vector<TensorView> in, out;
  std::vector<Tensor> results;
  for (const Tensor& input : inputs) {
    const Buffer& there = memory.emplace_back(gpu.allocate(input.bytes()));
    gpu.upload(there.data(), input.raw(), input.bytes());
    in.push_back({there.data(), input.dtype(), input.shape()});
  }
  for (const ValueType& type : node.outputs()) {
    const Tensor& result = results.emplace_back(type.dtype, type.shape);
    out.push_back(
        {memory.emplace_back(gpu.allocate(result.bytes())).data(), type.dtype, type.shape});
  }
  if (i >= 0) out[0].data = in[std::size_t(i)].data;
  const auto kernel = gpu.make_kernel(node);
  const Buffer scratch = gpu.allocate(kernel->scratch_bytes());
  // Scratch memory in a plan holds bytes that other kernels left; here all are 0x7f.
  const std::vector<char> left(kernel->scratch_bytes(), '\x7f');
  gpu.upload(scratch.data(), left.data(), left.size());
  KernelCall call{in, out, scratch.span(), {}};
  call.exchange = exchange;
  kernel->run(call);
  for (std::size_t k = 0; k < out.size(); ++k) {
    gpu.download(results[k].raw(), out[k].data, results[k].bytes());
  }
  gpu.synchronize();
  return results;
}

// A user's op may bring a CUDA kernel. The host computes an op that does not, and a message names
// it.
TEST_F(CudaTest, AnOpOfOnesOwnMayBringItsSource) {
  Op op;
  op.name = "twice";
  op.infer = [](const OpInputs& in) { return std::vector<ValueType>{in.types[0]}; };
  op.no_gradient = "a test";
  op.cost = [](const Node&) { return Cost{}; };
  op.kernel = [](const Node&, const KernelCall& call) {
    for (std::int64_t i = 0; i < call.outputs[0].shape.elements(); ++i) {
      call.outputs[0].as<float>()[i] = 2 * call.inputs[0].as<float>()[i];
    }
  };
  for (const bool has_source : {true, false}) {
    if (has_source) {
      op.cuda_source = [](const Node&) {
        return "extern \"C\" __global__ void kernel(float* y, const float* x, long long n) {\n"
               "  EACH(i, n) y[i] = 2 * x[i];\n}\n";
      };
    } else {
      op.cuda_source = nullptr;
    }
    OpRegistry ops = copy_of_builtin_ops();
    register_op(ops, op);
    Graph graph(ops);
    const Value x = graph.input("x", {300}), y = graph.apply("twice", {x});
    const auto gpu = device();
    const Feeds feeds = {{"x", numbers({300})}};
    const Tensor got = evaluate_graph({&y, 1}, feeds, *gpu)[0];
    EXPECT_EQ(distance_of(got, evaluate_graph({&y, 1}, feeds, *naive())[0]), 0);
    EXPECT_THAT(
        gpu->remarks(),
        testing::Conditional(has_source, testing::IsEmpty(),
                             testing::Contains(HasSubstr("no kernels of its own for twice"))));
    EXPECT_EQ(gpu->host_op_time() > Duration(0), !has_source);
  }
}

// The tensor has more parts than a small GPU starts blocks; the kernel still sums each part.
TEST_F(CudaTest, SumsOverLargeTensorsAreRight) {
  Graph graph;
  const Value a = graph.input("a", {50, 201}), b = graph.input("b", {50, 201});
  const std::vector<Tensor> inputs = {numbers({50, 201}), numbers({50, 201}, 2)};
  const Value both[] = {a, b};
  for (const Value& sum : {mean_squared_error(a, b), global_norm(both)}) {
    const auto gpu = device();
    const Tensor expected = evaluate_node(sum.node(), inputs, *naive())[0];
    EXPECT_LE(distance_of(outputs_of(sum.node(), inputs, -1, *gpu)[0], expected), 1e-6);
  }
}

// The host computes sums that are exchanged in the middle of a step. Here the other part of the
// batch is equal to this one.
TEST_F(CudaTest, BatchNormOfAWholeBatchIsRight) {
  struct Twice : SumExchange {
    void add_up(std::span<double> sums) override {
      for (double& sum : sums) sum *= 2;
      ++calls;
    }
    int calls = 0;
  } exchange;
  Graph graph;
  const Value x = graph.input("x", {4, 3, 2, 2});
  const Value gains = graph.input("gains", {3}), offsets = graph.input("offsets", {3});
  const Node& node = batch_norm(x, gains, offsets, 1e-5).y.node();
  const std::vector<Tensor> inputs = {numbers({4, 3, 2, 2}), numbers({3}, 2), numbers({3}, 3)};
  const auto expected = outputs_of(node, inputs, -1, *device());
  const auto gpu = device();
  const auto got = outputs_of(node, inputs, -1, *gpu, &exchange);
  for (std::size_t k = 0; k < got.size(); ++k) EXPECT_LE(distance_of(got[k], expected[k]), 1e-6);
  EXPECT_EQ(exchange.calls, 6) << "twice for each channel";
}

TEST_F(CudaTest, OutputsOnGpuMayLieWhereInputsWere) {
  const auto gpu = device();
  std::set<std::string> tried;
  for (const OpCase& c : all_op_cases()) {
    const BuiltCase built(c);
    const Node* node = nullptr;
    for (const auto& one : built.graph.nodes()) {
      if (node == nullptr && one->op().name == c.op) node = one.get();
    }
    if (node == nullptr || node->op().in_place.empty()) continue;
    const std::vector<Value> values(node->inputs().begin(), node->inputs().end());
    const auto inputs = evaluate_graph(values, built.feeds, *naive());
    for (const int i : node->op().in_place) {
      if (i >= int(values.size()) || values[std::size_t(i)].type() != node->outputs()[0]) continue;
      const auto apart = outputs_of(*node, inputs, -1, *gpu);
      const auto in_place = outputs_of(*node, inputs, i, *gpu);
      for (std::size_t k = 0; k < apart.size(); ++k) {
        EXPECT_EQ(distance_of(in_place[k], apart[k]), 0) << c.op << " " << c.label << " " << i;
      }
      tried.insert(c.op);
    }
  }
  EXPECT_GT(tried.size(), 20u);
}

TEST_F(CudaTest, CodeIsKeptAndCompiledAnewWhereItsFileIsNotWhole) {
  const TemporaryFolder folder;
  static int compiled = 0;
  static const auto compile = calls_.compile;
  compiled = 0;
  calls_.compile = [](CudaCalls::Program* program, int options, const char* const* words) {
    ++compiled;
    return compile(program, options, words);
  };
  const CudaCodeCache cache(calls_, "sm_90", folder.path("made/cuda"));
  const std::string source = "extern \"C\" __global__ void kernel(float* x) { x[0] = 1; }\n";
  bool kept = true;
  const std::vector<char> code = cache.code(source, kept);
  EXPECT_FALSE(kept);
  EXPECT_EQ(cache.code(source, kept), code);
  EXPECT_TRUE(kept);
  EXPECT_EQ(compiled, 1);
  cache.code(source + "\n", kept);
  EXPECT_FALSE(kept);
  CudaCodeCache(calls_, "sm_80", folder.path("made/cuda")).code(source, kept);
  EXPECT_FALSE(kept);
  EXPECT_EQ(compiled, 3);
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder.path("made/cuda"))) {
    std::filesystem::resize_file(file.path(), std::filesystem::file_size(file.path()) - 1);
    ++files;
  }
  EXPECT_EQ(files, 3);
  EXPECT_EQ(cache.code(source, kept), code);
  EXPECT_FALSE(kept);
  cache.code(source, kept);
  EXPECT_TRUE(kept);
  CudaCodeCache(calls_, "sm_90", "/proc/none").code(source, kept);
  EXPECT_FALSE(kept) << "where nothing can be written";
}

// The file is whole, but the driver refuses its code.
TEST_F(CudaTest, KeptCodeThatCannotBeLoadedIsCompiledAnew) {
  Graph graph;
  const Value y = square(graph.input("x", {4}));
  const Feeds feeds = {{"x", numbers({4})}};
  const auto got = [&] { return evaluate_graph({&y, 1}, feeds, *device())[0]; };
  const Tensor expected = got();
  static bool refuses = false;
  static const auto load = calls_.load_module;
  refuses = true;
  calls_.load_module = [](CudaCalls::Module** module, const void* image) {
    return std::exchange(refuses, false) ? 200 : load(module, image);
  };
  EXPECT_EQ(distance_of(got(), expected), 0);
  EXPECT_FALSE(refuses);
}

// As on a GPU, the driver keeps the error, so this test runs in a process of its own.
TEST_F(CudaTest, WhoWritesBehindTheEndIsNamedWhereEachKernelIsWaitedFor) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Op op;
  op.name = "overrun";
  op.infer = [](const OpInputs& in) { return std::vector<ValueType>{in.types[0]}; };
  op.no_gradient = "a test";
  op.cost = [](const Node&) { return Cost{}; };
  op.kernel = [](const Node&, const KernelCall&) {};
  op.cuda_source = [](const Node&) {
    return "extern \"C\" __global__ void kernel(float* y, const float* x, long long n) {\n"
           "  EACH(i, n + 1) y[i] = 1;\n}\n";
  };
  OpRegistry ops = copy_of_builtin_ops();
  register_op(ops, op);
  Graph graph(ops);
  const Value x = graph.input("x", {64});
  const Value y = square(graph.apply("overrun", {square(x)}));
  const Feeds feeds = {{"x", numbers({64})}};
  const auto said = [&](bool waits) {
    EXPECT_EQ(calls_.init(0), 0);
    CudaDevice gpu(calls_, 0, naive(), CudaOptions{.waits = waits});
    std::fputs(error_of([&] { evaluate_graph({&y, 1}, feeds, gpu); }).c_str(), stderr);
    std::_Exit(1);
  };
  EXPECT_EXIT(said(true), testing::ExitedWithCode(1),
              "the kernel of overrun.* \\(overrun\\) failed: .*behind the end");
  EXPECT_EXIT(said(false), testing::ExitedWithCode(1), "--cuda-check names the op");
}

/// Runs a kernel of blocks of 64 threads on 128 floats; returns the floats, or throws.
class PlantedTest : public CudaTest {
 protected:
  std::vector<float> run(const std::string& source, int schedule, std::size_t bytes = 512) {
    const EnvironmentVariable set("FAKE_CUDA_SCHEDULE", std::to_string(schedule));
    CudaCalls::Stream* stream = nullptr;
    CudaCalls::Module* module = nullptr;
    CudaCalls::Function* function = nullptr;
    CudaCalls::Address memory = 0;
    std::vector<float> numbers(bytes / 4);
    const auto check = [&](CudaCalls::Status status) {
      if (status == 0) return;
      throw Error(ErrorCode::kInternal, cuda_error_text(calls_, status));
    };
    const std::vector<char> code = cuda_code(calls_, source, "sm_90");
    check(calls_.make_stream(&stream, 0));
    check(calls_.load_module(&module, code.data()));
    check(calls_.find_function(&function, module, "planted"));
    check(calls_.allocate(&memory, bytes));
    check(calls_.fill(memory, 0, bytes, stream));
    void* parameters[] = {&memory};
    check(calls_.launch(function, 1, 1, 1, 64, 1, 1, 0, stream, parameters, nullptr));
    check(calls_.download(numbers.data(), memory, bytes, stream));
    check(calls_.wait_for_stream(stream));
    calls_.free(memory);
    return numbers;
  }
  // Each thread writes its number, and reads the number of the thread at the mirrored place in its
  // block.
  static std::string reversed(const std::string& barrier) {
    return "extern \"C\" __global__ void planted(float* x) {\n"
           "  __shared__ float kept[64];\n  kept[threadIdx.x] = threadIdx.x + 1;\n" +
           barrier + "  x[threadIdx.x] = kept[63 - threadIdx.x];\n}\n";
  }
};

TEST_F(PlantedTest, ABarrierThatIsLeftOutIsFoundByEverySchedule) {
  for (int schedule = 0; schedule < 6; ++schedule) {
    // The source differs each time, so that shared memory left by an earlier run cannot help.
    const std::string other = "  // schedule " + std::to_string(schedule) + "\n";
    const auto right = run(reversed("  __syncthreads();\n"), schedule);
    const auto wrong = run(reversed(other), schedule);
    for (int i = 0; i < 64; ++i) EXPECT_EQ(right[std::size_t(i)], float(64 - i)) << schedule;
    EXPECT_NE(right, wrong) << schedule;
  }
}

TEST_F(PlantedTest, AWarpThatRunsAheadOverwritesWhatOthersStillRead) {
  // The result is correct only if a barrier stands between the two uses of the shared memory.
  const auto source = [](const std::string& barrier) {
    return "extern \"C\" __global__ void planted(float* x) {\n"
           "  __shared__ float kept[2];\n"
           "  if (threadIdx.x % 32 == 0) kept[threadIdx.x / 32] = 1;\n  __syncthreads();\n"
           "  const float first = kept[1 - threadIdx.x / 32];\n" +
           barrier +
           "  if (threadIdx.x % 32 == 0) kept[threadIdx.x / 32] = 2;\n  __syncthreads();\n"
           "  x[threadIdx.x] = first;\n}\n";
  };
  int found = 0;
  for (int schedule = 0; schedule < 6; ++schedule) {
    const auto right = run(source("  __syncthreads();\n"), schedule);
    EXPECT_THAT(std::vector<float>(right.begin(), right.begin() + 64), testing::Each(1));
    found += int(run(source(""), schedule) != right);
  }
  EXPECT_GE(found, 2) << "the schedules in which a warp runs ahead";
}

TEST_F(PlantedTest, ShufflesAndAtomicsAreThoseOfAWarp) {
  const std::string source =
      "extern \"C\" __global__ void planted(float* x) {\n"
      "  float sum = threadIdx.x;\n"
      "  for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(~0u, sum, by);\n"
      "  x[threadIdx.x] = sum;\n  atomicAdd(x + 64, 1.0f);\n}\n";
  for (int schedule = 0; schedule < 6; ++schedule) {
    const auto sums = run(source, schedule);
    EXPECT_EQ(sums[0], 496) << schedule;
    EXPECT_EQ(sums[63], 496 + 32 * 32) << schedule;
    EXPECT_EQ(sums[64], 64) << schedule;
  }
}

// As on a GPU, the driver keeps the error, so these tests run in processes of their own.
TEST_F(PlantedTest, AWriteBehindTheEndAndAHalfReachedBarrierAreErrors) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto said = [&](const std::string& body, std::size_t bytes) {
    const std::string source = "extern \"C\" __global__ void planted(float* x) { " + body + " }\n";
    const std::string error = error_of([&] { run(source, 2, bytes); });
    std::fputs(error.empty() ? "no error" : error.c_str(), stderr);
    std::_Exit(1);
  };
  EXPECT_EXIT(said("x[threadIdx.x] = 1;", 252), testing::ExitedWithCode(1),
              "written behind the end of a block of memory");
  EXPECT_EXIT(said("x[threadIdx.x] = 1;", 256), testing::ExitedWithCode(1), "no error");
  EXPECT_EXIT(said("if (threadIdx.x < 40) __syncthreads();", 256), testing::ExitedWithCode(1),
              "barrier that others do not reach");
}

// Returns the sources of all kernels, generated and hand-written.
std::set<std::string> all_sources() {
  std::set<std::string> sources;
  for (const FusableOp& op : fusable_ops()) {
    FusedStep step{std::string(op.name), {}, 0.3};
    std::vector<std::string> places;
    for (int k = 0; k < op.operands; ++k) {
      step.operands.push_back({FusedOperand::Kind::kInput, k});
      places.push_back(k == 1 ? "0" : "");
    }
    sources.insert(elementwise_source({&step, 1}, places));
  }
  for (const OpCase& c : all_op_cases()) {
    const BuiltCase built(c);
    for (const auto& node : built.graph.nodes()) {
      if (const std::optional<CudaWork> work = cuda_work(*node)) sources.insert(work->source);
    }
  }
  return sources;
}

// Needs no driver. If the real compiler is installed, it makes machine code for each architecture
// that the docs promise.
TEST(CudaSource, EveryKernelIsCompiledForEachArchitecture) {
  std::string why;
  const CudaPlugin* const plugin = cuda_plugin(why);
  if (plugin == nullptr) GTEST_SKIP() << why;
  if (plugin->no_compiler != nullptr) GTEST_SKIP() << "NVRTC: " << plugin->no_compiler;
  const std::set<std::string> sources = all_sources();
  EXPECT_GT(sources.size(), 40u);
  for (const std::string& source : sources) {
    for (const char* const architecture : {"sm_80", "sm_90", "sm_100"}) {
      const std::vector<char> code = cuda_code(plugin->calls, source, architecture);
      if (std::string_view(code.data(), std::min<std::size_t>(4, code.size())) !=
          "\x7f"
          "ELF") {
        GTEST_SKIP() << "the compiler of this process is the fake one";
      }
      EXPECT_GT(code.size(), 1000u) << architecture << "\n" << source;
    }
  }
}

// An H200, as cuDNN describes it.
const char* const kH200 =
    R"({"maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
        "regsPerBlock": 65536, "multiProcessorCount": 132, "smClockRateKHz": 1980000,
        "memClockRateKHz": 3201000, "l2CacheSize": 62914560, "warpSize": 32,
        "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
        "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "pciDeviceId": 0,
        "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "isTccDriver": 0,
        "supportCoopLaunch": 1, "deviceName": "NVIDIA H200", "cudaDeviceId": 0, "deviceVer": 900,
        "driverVer": 13000, "totalGlobalMem": 150754820096})";

/// The shape of a convolution in the zoo.
struct ZooConvolution {
  Shape x, weights;
  std::int64_t stride = 1;
  Padding padding = Padding::same();
};

// Needs no driver. If the real cuDNN is installed, it must have a float32 plan for each convolution
// of the zoo and its gradients, in both layouts.
TEST(CudaPlans, EveryConvolutionOfTheZooHasOne) {
  std::string why;
  const CudaPlugin* const plugin = cuda_plugin(why);
  if (plugin == nullptr) GTEST_SKIP() << why;
  if (plugin->no_cudnn != nullptr) GTEST_SKIP() << "cuDNN: " << plugin->no_cudnn;
  if (::dlsym(RTLD_DEFAULT, "note_of_fake_cudnn") != nullptr) {
    GTEST_SKIP() << "the cuDNN of this process is the fake one";
  }
  const Cudnn cudnn(plugin->calls.cudnn, kH200);
  const ZooConvolution zoo[] = {{{128, 3, 24, 24}, {64, 3, 5, 5}},
                                {{128, 64, 12, 12}, {64, 64, 5, 5}},
                                {{128, 3, 32, 32}, {16, 3, 3, 3}},
                                {{128, 16, 32, 32}, {16, 16, 3, 3}},
                                {{128, 16, 32, 32}, {32, 16, 3, 3}, 2},
                                {{128, 32, 16, 16}, {32, 32, 3, 3}},
                                {{128, 32, 16, 16}, {64, 32, 3, 3}, 2},
                                {{128, 64, 8, 8}, {64, 64, 3, 3}},
                                {{2000, 3, 32, 32}, {24, 3, 2, 2}, 1, Padding::valid()},
                                {{2000, 24, 31, 31}, {64, 24, 3, 3}},
                                {{2000, 64, 15, 15}, {64, 64, 3, 3}},
                                {{2000, 64, 15, 15}, {256, 64, 3, 3}},
                                {{2000, 256, 7, 7}, {256, 256, 3, 3}},
                                {{2000, 256, 3, 3}, {256, 256, 3, 3}}};
  for (const ZooConvolution& z : zoo) {
    Graph graph;
    const Value y = conv2d(graph.input("x", z.x), graph.input("w", z.weights),
                           {.strides = {z.stride, z.stride}, .padding = z.padding});
    const std::optional<CudaWork> work = cuda_work(y.node());
    ASSERT_TRUE(work && work->launches[0].library);
    auto call = std::get<CudaConvolution>(work->launches[0].library->what);
    for (const bool last : {false, true}) {
      for (CudaConvolution::Tensor* const image : {&call.operands[0], &call.operands[1]}) {
        const auto [n, c, h, w] = image->dimensions;
        if (last) image->strides = {c * h * w, 1, w * c, c};
      }
      const auto [to, x, w] = call.operands;
      using Kind = CudaConvolution::Kind;
      for (const CudaConvolution::Kind kind :
           {Kind::kForward, Kind::kInputGrad, Kind::kWeightsGrad}) {
        CudaConvolution one = call;
        one.kind = kind;
        if (kind == Kind::kInputGrad) one.operands = {x, to, w};
        if (kind == Kind::kWeightsGrad) one.operands = {w, x, to};
        EXPECT_NE(cudnn.plan(one, {}), nullptr)
            << z.x.str() << " " << z.weights.str() << " " << int(kind);
      }
    }
  }
}

TEST(CudaSource, NumbersKeepTheirBits) {
  const auto of = [](double number) {
    const FusedStep step{"scale", {{FusedOperand::Kind::kInput, 0}}, number};
    return elementwise_source({&step, 1}, {""});
  };
  EXPECT_THAT(of(2), HasSubstr("* 2.00000000f"));
  EXPECT_THAT(of(1e-10), HasSubstr("* 1.00000001e-10f"));
  EXPECT_THAT(of(-INFINITY), HasSubstr("(-1.0f / 0.0f)"));
}

}  // namespace
}  // namespace paceline
