#include "params/shard/variable_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>

#include "paceline/error.h"

namespace paceline {
namespace {

VariableSpec spec_of(const Shape& shape, const Rule& rule) {
  VariableSpec spec;
  spec.name = "layer/w";
  spec.shape = shape;
  spec.rule = rule;
  return spec;
}

VariableState state_of(const Tensor& value, std::vector<Tensor> slots = {}) {
  return {0, value, std::move(slots)};
}

ErrorCode code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("layer/w"), std::string::npos) << error.what();
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST(VariableMemory, SlotsBeginAsTheRuleSays) {
  VariableMemory adagrad(spec_of({2}, Adagrad{0.1f, 0.25f}));
  adagrad.write(state_of(Tensor::of<float>({2}, {1, 2})));
  const VariableState state = adagrad.read(3);
  EXPECT_EQ(state.variable, 3);
  ASSERT_EQ(state.slots.size(), 1u);
  EXPECT_EQ(state.slots[0].data<float>()[1], 0.25f);

  VariableMemory adam(spec_of({2}, Adam{}));
  adam.write(state_of(Tensor(DType::kFloat32, {2})));
  const VariableState moments = adam.read(0);
  ASSERT_EQ(moments.slots.size(), 3u);
  EXPECT_EQ(moments.slots[2].shape(), Shape{1});
  EXPECT_EQ(moments.slots[2].item<std::int64_t>(), 0);
}

TEST(VariableMemory, KeepsTheFirstMemoryIfNobodyElseHoldsIt) {
  const Tensor held_elsewhere = Tensor::of<float>({2}, {1, 2});
  VariableMemory copied(spec_of({2}, Momentum{}));
  copied.write(state_of(held_elsewhere, {held_elsewhere}));
  EXPECT_NE(copied.view().data, held_elsewhere.raw());

  VariableState own{0, Tensor::of<float>({2}, {1, 2}), {}};
  own.slots.push_back(Tensor::of<float>({2}, {3, 4}));
  const void* const memory = own.value.raw();
  VariableMemory kept(spec_of({2}, Momentum{}));
  kept.write(std::move(own));
  EXPECT_EQ(kept.view().data, memory);
  EXPECT_EQ(kept.read(0).slots[0].data<float>()[1], 4);
  kept.write(copied.read(0));  // a step may hold a view of it
  EXPECT_EQ(kept.view().data, memory);
  EXPECT_EQ(kept.view().as<float>()[1], 2);
}

TEST(VariableMemory, AdamCountsItsContributions) {
  VariableMemory held(spec_of({1}, Adam{0.001f}));
  held.write(state_of(Tensor::of<float>({1}, {1})));
  const float first = 0.5f, second = -1;
  held.apply({0.001f, 1}, &first, nullptr);
  EXPECT_NEAR(held.read(0).value.item<float>(), 0.999, 1e-6);
  held.apply({0.001f, 1}, &second, nullptr);
  EXPECT_NEAR(held.read(0).value.item<float>(), 0.9993661, 1e-6);
  EXPECT_EQ(held.read(0).slots[2].item<std::int64_t>(), 2);
}

TEST(VariableMemory, GoesOnWhereAnotherStopped) {
  const float gradient[] = {0.5f, -0.25f};
  VariableMemory first(spec_of({2}, Adam{0.1f}));
  first.write(state_of(Tensor::of<float>({2}, {1, 2})));
  first.apply({0.1f, 1}, gradient, nullptr);
  VariableMemory second(spec_of({2}, Adam{0.1f}));
  second.write(first.read(0));
  first.apply({0.1f, 1}, gradient, nullptr);
  second.apply({0.1f, 1}, gradient, nullptr);
  EXPECT_EQ(first.read(0).value.data<float>()[0], second.read(0).value.data<float>()[0]);
  EXPECT_EQ(first.read(0).value.data<float>()[1], second.read(0).value.data<float>()[1]);
}

TEST(VariableMemory, WritingKeepsTheMemory) {
  VariableMemory held(spec_of({1}, Sgd{}));
  held.write(state_of(Tensor::of<float>({1}, {1})));
  const TensorView view = held.view();
  held.write(state_of(Tensor::of<float>({1}, {5})));
  EXPECT_EQ(held.view().data, view.data);
  EXPECT_EQ(*view.as<float>(), 5);
}

TEST(VariableMemory, ReadsAreCopies) {
  VariableMemory held(spec_of({1}, Sgd{1.0f}));
  const Tensor given = Tensor::of<float>({1}, {1});
  held.write(state_of(given));
  const VariableState before = held.read(0);
  const float gradient = 1;
  held.apply({1, 1}, &gradient, nullptr);
  EXPECT_EQ(before.value.item<float>(), 1);
  EXPECT_EQ(given.item<float>(), 1);
  EXPECT_EQ(held.read(0).value.item<float>(), 0);
}

TEST(VariableMemory, WeightDecayIsATermOfTheRule) {
  VariableSpec spec = spec_of({1}, Sgd{});
  spec.weight_decay = 0.5f;
  VariableMemory held(spec);
  held.write(state_of(Tensor::of<float>({1}, {2})));
  const float gradient = 3;
  held.apply({0.1f, 0.5f}, &gradient, nullptr);
  EXPECT_FLOAT_EQ(held.read(0).value.item<float>(), 2 - 0.1f * (0.5f * 3 + 0.5f * 2));
}

TEST(VariableMemory, ThreadsChangeNoBit) {
  const std::int64_t size = 100'003;
  std::vector<float> values(size), gradient(size);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = float(i % 97) * 0.01f;
    gradient[i] = float(i % 89) * 0.1f - 4;
  }
  ThreadPool pool(3);
  VariableMemory alone(spec_of({size}, Adam{})), together(spec_of({size}, Adam{}));
  for (VariableMemory* held : {&alone, &together}) {
    held->write(state_of(Tensor::of<float>({size}, values)));
    held->apply({0.01f, 1}, gradient.data(), held == &alone ? nullptr : &pool);
  }
  const Tensor a = alone.read(0).value, b = together.read(0).value;
  EXPECT_EQ(std::memcmp(a.raw(), b.raw(), a.bytes()), 0);
}

TEST(VariableMemory, RowsAreThoseThatAreNamed) {
  VariableSpec spec = spec_of({4, 2}, Sgd{});
  spec.sparse = true;
  VariableMemory held(spec);
  held.write(state_of(Tensor::of<float>({4, 2}, {0, 0, 1, 1, 2, 2, 3, 3})));
  const std::int32_t ids[] = {3, 1};
  const float gradient[] = {1, 2, 3, 4};
  held.apply_rows({1, 1}, ids, gradient, nullptr);
  const Tensor after = held.read(0).value;
  const std::vector<float> values(after.data<float>().begin(), after.data<float>().end());
  EXPECT_EQ(values, (std::vector<float>{0, 0, -2, -3, 2, 2, 2, 1}));

  const std::int32_t outside[] = {4};
  EXPECT_EQ(code_of([&] {
              held.apply_rows({1, 1}, outside, gradient, nullptr);
            }),
            ErrorCode::kInvalidArgument);
}

TEST(VariableMemory, RefusesWhatDoesNotFit) {
  VariableMemory held(spec_of({2}, Adam{}));
  const auto refused = [&](const VariableState& state) {
    return code_of([&] { held.write(state); }) == ErrorCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused(state_of(Tensor(DType::kFloat32, {3}))));
  EXPECT_TRUE(refused(state_of(Tensor(DType::kFloat64, {2}))));
  EXPECT_TRUE(refused(state_of(Tensor(DType::kFloat32, {2}), {Tensor(DType::kFloat32, {2})})));
  EXPECT_FALSE(held.written());
}

TEST(VariableMemory, RefusesRulesThatCannotBe) {
  VariableSpec rows = spec_of({4, 2}, Ema{});
  rows.sparse = true;
  EXPECT_EQ(code_of([&] { VariableMemory held(rows); }), ErrorCode::kInvalidArgument);
  VariableSpec wide = spec_of({4}, Sgd{});
  wide.dtype = DType::kFloat64;
  EXPECT_EQ(code_of([&] { VariableMemory held(wide); }), ErrorCode::kInvalidArgument);
  wide.trained = false;
  VariableMemory only_read(wide);
  only_read.write(state_of(Tensor(DType::kFloat64, {4})));
  EXPECT_TRUE(only_read.read(0).slots.empty());
}

}  // namespace
}  // namespace paceline
