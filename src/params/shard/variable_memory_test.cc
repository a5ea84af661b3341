#include "params/shard/variable_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/row_count.h"
#include "kernels/testing/custom_rules.h"
#include "paceline/error.h"
#include "params/variable_arrays.h"

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

enum class Holder { kOwn, kGiven };

/// A whole variable, whose value lies either in memory of its own or in memory of the test.
class EitherMemory : public testing::TestWithParam<Holder> {
 protected:
  VariableMemory& make(const VariableSpec& spec) {
    if (GetParam() == Holder::kOwn) return made_.emplace_back(spec);
    const std::int64_t rows = row_count(spec.shape);
    given_.emplace_back(std::size_t(rows) * row_bytes(spec));
    return made_.emplace_back(spec, 0, rows, given_.back().span());
  }

 private:
  std::deque<Buffer> given_;
  std::deque<VariableMemory> made_;
};
INSTANTIATE_TEST_SUITE_P(Memory, EitherMemory, testing::Values(Holder::kOwn, Holder::kGiven),
                         [](const auto& test) {
                           return std::string(test.param == Holder::kOwn ? "Own" : "Given");
                         });

std::vector<float> floats_of(const Tensor& tensor) {
  return {tensor.data<float>().begin(), tensor.data<float>().end()};
}

TEST_P(EitherMemory, SlotsBeginAsTheRuleSays) {
  VariableMemory& adagrad = make(spec_of({2}, Adagrad{0.1f, 0.25f}));
  adagrad.write(state_of(Tensor::of<float>({2}, {1, 2})));
  const VariableState state = adagrad.read(3);
  EXPECT_EQ(state.variable, 3);
  ASSERT_EQ(state.slots.size(), 1u);
  EXPECT_EQ(state.slots[0].data<float>()[1], 0.25f);

  VariableMemory& adam = make(spec_of({2}, Adam{}));
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
  kept.write(copied.read(0));  // keeps its memory, since a step may hold a view of it
  EXPECT_EQ(kept.view().data, memory);
  EXPECT_EQ(kept.view().as<float>()[1], 2);
}

TEST_P(EitherMemory, AdamCountsItsContributions) {
  VariableMemory& held = make(spec_of({1}, Adam{0.001f}));
  held.write(state_of(Tensor::of<float>({1}, {1})));
  const float first = 0.5f, second = -1;
  held.apply({0.001f, 1}, &first, nullptr);
  EXPECT_NEAR(held.read(0).value.item<float>(), 0.999, 1e-6);
  held.apply({0.001f, 1}, &second, nullptr);
  EXPECT_NEAR(held.read(0).value.item<float>(), 0.9993661, 1e-6);
  EXPECT_EQ(held.read(0).slots[2].item<std::int64_t>(), 2);
}

TEST_P(EitherMemory, GoesOnWhereAnotherStopped) {
  const float gradient[] = {0.5f, -0.25f};
  VariableMemory& first = make(spec_of({2}, Adam{0.1f}));
  first.write(state_of(Tensor::of<float>({2}, {1, 2})));
  first.apply({0.1f, 1}, gradient, nullptr);
  VariableMemory& second = make(spec_of({2}, Adam{0.1f}));
  second.write(first.read(0));
  first.apply({0.1f, 1}, gradient, nullptr);
  second.apply({0.1f, 1}, gradient, nullptr);
  EXPECT_EQ(first.read(0).value.data<float>()[0], second.read(0).value.data<float>()[0]);
  EXPECT_EQ(first.read(0).value.data<float>()[1], second.read(0).value.data<float>()[1]);
}

TEST_P(EitherMemory, WritingKeepsTheMemory) {
  VariableMemory& held = make(spec_of({1}, Sgd{}));
  held.write(state_of(Tensor::of<float>({1}, {1})));
  const TensorView view = held.view();
  held.write(state_of(Tensor::of<float>({1}, {5})));
  EXPECT_EQ(held.view().data, view.data);
  EXPECT_EQ(*view.as<float>(), 5);
}

TEST_P(EitherMemory, ReadsAreCopies) {
  VariableMemory& held = make(spec_of({1}, Sgd{1.0f}));
  const Tensor given = Tensor::of<float>({1}, {1});
  held.write(state_of(given));
  const VariableState before = held.read(0);
  const float gradient = 1;
  held.apply({1, 1}, &gradient, nullptr);
  EXPECT_EQ(before.value.item<float>(), 1);
  EXPECT_EQ(given.item<float>(), 1);
  EXPECT_EQ(held.read(0).value.item<float>(), 0);
}

TEST_P(EitherMemory, WeightDecayIsATermOfTheRule) {
  VariableSpec spec = spec_of({1}, Sgd{});
  spec.weight_decay = 0.5f;
  VariableMemory& held = make(spec);
  held.write(state_of(Tensor::of<float>({1}, {2})));
  const float gradient = 3;
  held.apply({0.1f, 0.5f}, &gradient, nullptr);
  EXPECT_FLOAT_EQ(held.read(0).value.item<float>(), 2 - 0.1f * (0.5f * 3 + 0.5f * 2));
}

TEST_P(EitherMemory, ThreadsChangeNoBit) {
  const std::int64_t size = 100'003;
  std::vector<float> values(size), gradient(size);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = float(i % 97) * 0.01f;
    gradient[i] = float(i % 89) * 0.1f - 4;
  }
  ThreadPool pool(3);
  VariableMemory &alone = make(spec_of({size}, Adam{})), together(spec_of({size}, Adam{}));
  for (VariableMemory* held : {&alone, &together}) {
    held->write(state_of(Tensor::of<float>({size}, values)));
    held->apply({0.01f, 1}, gradient.data(), held == &alone ? nullptr : &pool);
  }
  const Tensor a = alone.read(0).value, b = together.read(0).value;
  EXPECT_EQ(std::memcmp(a.raw(), b.raw(), a.bytes()), 0);
}

TEST_P(EitherMemory, RowsAreThoseThatAreNamed) {
  VariableSpec spec = spec_of({4, 2}, Sgd{});
  spec.sparse = true;
  VariableMemory& held = make(spec);
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

TEST_P(EitherMemory, WhatIsMarkedIsReadWhileUpdatesGoOn) {
  VariableMemory& held = make(spec_of({2}, Adam{0.1f}));
  held.write(state_of(Tensor::of<float>({2}, {1, 2})));
  const float gradient[] = {1, 1};
  held.apply({0.1f, 1}, gradient, nullptr);
  const VariableState before = held.read(0);
  held.mark();
  held.apply({0.1f, 1}, gradient, nullptr);
  for (std::size_t array = 0; array < held.arrays(); ++array) {
    const Tensor& then = array == 0 ? before.value : before.slots[array - 1];
    const auto marked = held.read_marked(array, 0, held.array_bytes(array));
    ASSERT_EQ(marked.size(), then.bytes());
    EXPECT_EQ(std::memcmp(marked.data(), then.raw(), then.bytes()), 0) << "array " << array;
  }
  EXPECT_NE(floats_of(held.read(0).value), floats_of(before.value));
}

// Writes as a checkpoint is loaded: the value, then the slots, each in parts.
TEST_P(EitherMemory, BytesThatAreWrittenAreThoseThatAreRead) {
  VariableSpec spec = spec_of({3}, Adam{});
  spec.average_decay = 0.5f;
  VariableMemory& first = make(spec);
  first.write(state_of(Tensor::of<float>({3}, {1, 2, 3})));
  const float gradient[] = {1, -1, 2};
  first.apply({0.1f, 1}, gradient, nullptr);
  std::vector<std::byte> all(first.all_bytes()), copy(first.all_bytes());
  first.copy_all(all);

  VariableMemory& second = make(spec);
  second.write(state_of(Tensor(DType::kFloat32, {3})));
  std::span<const std::byte> left = all;
  for (std::size_t array = 0; array < second.arrays(); ++array) {
    for (std::size_t offset = 0; offset < second.array_bytes(array); offset += 4) {
      second.write(array, offset, left.first(4));
      left = left.subspan(4);
    }
  }
  second.copy_all(copy);
  EXPECT_EQ(copy, all);
}

TEST_P(EitherMemory, AValueAloneMakesSlotsBeginAnew) {
  VariableSpec spec = spec_of({2}, Adam{});
  spec.average_decay = 0.5f;
  VariableMemory& held = make(spec);
  held.write(state_of(Tensor::of<float>({2}, {1, 2})));
  const float gradient[] = {1, 1};
  held.apply({0.1f, 1}, gradient, nullptr);
  const std::vector<float> value = {5, 6};
  held.write(0, 0, std::as_bytes(std::span(value)));
  const VariableState state = held.read(0);
  EXPECT_EQ(floats_of(state.value), value);
  EXPECT_EQ(floats_of(state.slots[0]), (std::vector<float>{0, 0}));
  EXPECT_EQ(state.slots[2].item<std::int64_t>(), 0);
  EXPECT_EQ(floats_of(state.slots[3]), value) << "the moving average";
}

TEST(VariableMemory, RowsOfAPieceAreNamedAsInTheVariable) {
  VariableSpec spec = spec_of({10, 2}, Sgd{});
  spec.sparse = true;
  Buffer memory(3 * row_bytes(spec));
  VariableMemory held(spec, 4, 3, memory.span());
  EXPECT_EQ(held.view().shape, (Shape{3, 2}));
  const std::int32_t ids[] = {6, 4};
  const float gradient[] = {1, 2, 3, 4};
  held.apply_rows({1, 1}, ids, gradient, nullptr);
  EXPECT_EQ(floats_of(held.read(0).value), (std::vector<float>{-3, -4, 0, 0, -1, -2}));
  for (const std::int32_t outside : {3, 7}) {
    EXPECT_EQ(code_of([&] {
                held.apply_rows({1, 1}, {&outside, 1}, gradient, nullptr);
              }),
              ErrorCode::kInvalidArgument);
  }
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

TEST(VariableMemory, RefusesARuleThatAsksForAllOfASplitOrSparseOrHugeVariable) {
  std::vector<std::byte> half(2 * 3 * sizeof(float));
  EXPECT_THROW(VariableMemory(spec_of({4, 3}, muon()), 0, 2, half), Error);
  VariableSpec sparse = spec_of({4, 3}, muon());
  sparse.sparse = true;
  EXPECT_THROW(VariableMemory{sparse}, Error);
  // The rule would multiply this column by its own transpose. The product would have as many
  // elements as the square of the column's length.
  EXPECT_THROW(VariableMemory{spec_of({100'000'000, 1}, muon())}, Error);
  EXPECT_NO_THROW(VariableMemory{spec_of({4, 3}, muon())});
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
