// Tests that plans read a part of a value in the memory of that value, and write the parts of a
// joined value straight into the memory of the joined value.
#include <gmock/gmock.h>

#include "exec/testing/plan_fixture.h"
#include "paceline/ops.h"

namespace paceline {
namespace {

using testing::ElementsAre;

TEST_F(PlanTest, APartThatLiesInAnotherValueIsReadThere) {
  const Value x = relu(graph_.input("x", {8, 16}));
  const Value rows = slice(x, {2, 0}, {4, 16});
  const std::vector<Value> halves = split(x, 2, 0);
  EXPECT_THAT(text(*fetch({tanh(rows)})), ElementsAre("relu", "tanh"));
  EXPECT_THAT(text(*fetch({add(halves[1], slice(rows, {0, 0}, {4, 16}))})),
              ElementsAre("relu", "add"));
  EXPECT_THAT(text(*fetch({slice(reshape(x, {2, 4, 16}), {1, 1, 0}, {1, 2, 16})})),
              ElementsAre("relu"));
}

// If the kernel did, one of its threads could overwrite what another thread has yet to read.
TEST_F(PlanTest, AKernelThatReadsAPartDoesNotTakeOverTheMemoryOfTheWhole) {
  const Value x = relu(graph_.input("x", {8, 16}));
  const auto plan = fetch({tanh(slice(x, {2, 0}, {4, 16}))});
  const Instruction& tanh = plan->instructions.back();
  const auto storage_of = [&](SlotIndex slot) {
    return plan->storages[std::size_t(plan->slots[std::size_t(slot)].storage)];
  };
  const Storage in = storage_of(tanh.inputs[0]), out = storage_of(tanh.outputs[0]);
  EXPECT_EQ(in.bytes, 8u * 16 * 4);
  EXPECT_EQ(plan->slots[std::size_t(tanh.inputs[0])].offset, 2u * 16 * 4);
  EXPECT_TRUE(out.offset + out.bytes <= in.offset || in.offset + in.bytes <= out.offset)
      << in.offset << " and " << out.offset;
}

TEST_F(PlanTest, APartWhoseElementsLieApartIsCopied) {
  const Value x = relu(graph_.input("x", {8, 16}));
  EXPECT_THAT(text(*fetch({slice(x, {0, 8}, {8, 8})})), ElementsAre("relu", "slice"));
  EXPECT_THAT(text(*fetch({split(x, 2, 1)[1]})), ElementsAre("relu", "split"));
}

TEST_F(PlanTest, APartThatBeginsWhereNoKernelReadsIsCopied) {
  const Value x = relu(graph_.input("x", {9, 9}));
  EXPECT_THAT(text(*fetch({slice(x, {1, 0}, {4, 9})})), ElementsAre("relu", "slice"));
  EXPECT_THAT(text(*fetch({split(x, 3, 0)[0]})), ElementsAre("relu", "split"));
}

TEST_F(PlanTest, WhatIsJoinedIsWrittenWhereItIsRead) {
  const Value x = graph_.input("x", {8, 16});
  const std::vector<Value> parts = {relu(x), reshape(tanh(reshape(x, {128})), {8, 16})};
  const Value rows = concat(parts, 0);
  const auto plan = fetch({transpose(rows)});
  EXPECT_THAT(text(*plan), ElementsAre("relu", "tanh", "transpose"));
  const auto slot_of = [&](SlotIndex index) { return plan->slots[std::size_t(index)]; };
  const Slot first = slot_of(plan->instructions[0].outputs[0]);
  const Slot second = slot_of(plan->instructions[1].outputs[0]);
  const Slot whole = slot_of(plan->instructions[2].inputs[0]);
  EXPECT_EQ(first.storage, whole.storage);
  EXPECT_EQ(second.storage, whole.storage);
  EXPECT_EQ(first.offset, 0u);
  EXPECT_EQ(second.offset, 8u * 16 * 4);
  EXPECT_EQ(plan->storages[std::size_t(whole.storage)].bytes, 16u * 16 * 4);
}

TEST_F(PlanTest, WhatIsJoinedCanBeAPartOfMore) {
  const Value x = graph_.input("x", {8, 16});
  const Value pair = concat(std::vector<Value>{relu(x), tanh(x)}, 0);
  const Value three = concat(std::vector<Value>{sigmoid(x), pair}, 0);
  const auto plan = fetch({add(pair, pair), three});
  EXPECT_THAT(text(*plan), ElementsAre("relu", "tanh", "sigmoid", "add"));
  const Slot read = plan->slots[std::size_t(plan->instructions[3].inputs[0])];
  EXPECT_EQ(read.offset, 8u * 16 * 4);
  EXPECT_EQ(read.storage, plan->slots[std::size_t(plan->fetches[1])].storage);
}

TEST_F(PlanTest, WhatCannotBeWrittenWhereItIsJoinedIsCopied) {
  const Value x = graph_.input("x", {8, 16});
  const Value a = relu(x), b = tanh(x);
  const auto kernels = [&](const std::vector<Value>& parts, int axis) {
    return text(*fetch({concat(parts, axis)}));
  };
  EXPECT_THAT(kernels({a, b}, 1),
              ElementsAre("relu", "tanh", "concat"));              // rows of a part lie apart
  EXPECT_THAT(kernels({a, x}, 0), ElementsAre("relu", "concat"));  // no kernel writes x
  EXPECT_THAT(kernels({a, a}, 0), ElementsAre("relu", "concat"));  // a cannot lie in two places
  EXPECT_THAT(kernels({slice(a, {0, 0}, {4, 16}), b}, 0),          // lies in a already
              ElementsAre("relu", "tanh", "concat"));
  const Value odd = relu(graph_.input("odd", {3, 3}));  // 36 bytes: unaligned
  EXPECT_THAT(kernels({odd, tanh(odd)}, 0), ElementsAre("relu", "tanh", "concat"));
  EXPECT_THAT(
      text(*fetch({concat(std::vector<Value>{a, b}, 0), concat(std::vector<Value>{b, a}, 0)})),
      ElementsAre("relu", "tanh", "concat"));  // the second join copies
}

TEST_F(PlanTest, PartsOfAContributionAreWrittenInItsPlace) {
  const Value w = graph_.variable("w", {16, 16});
  const Value x = graph_.input("x", {8, 16});
  const Value gradient = concat(std::vector<Value>{relu(x), tanh(x)}, 0);
  EXPECT_THAT(text(*make(contributing(reduce_sum(gradient), {{w, gradient}}))),
              ElementsAre("place w", "relu", "tanh", "reduce_sum", "ready w"));
  EXPECT_THAT(text(*make(contributing(reduce_sum(x), {{w, gradient}}))),
              ElementsAre("place w", "relu", "tanh", "ready w", "reduce_sum"));
}

TEST_F(PlanTest, TheStoreIsAskedForThePlaceBeforeTheFirstPart) {
  const Value w = graph_.variable("w", {16, 16});
  const Value x = graph_.input("x", {8, 16});
  const Value late = relu(x), early = tanh(x);
  const Value gradient = concat(std::vector<Value>{late, early}, 0);
  EXPECT_THAT(text(*make(contributing(reduce_sum(late), {{w, gradient}}))),
              ElementsAre("place w", "tanh", "relu", "reduce_sum", "ready w"));
}

TEST_F(PlanTest, AContributionIsNotWrittenIntoWhatItIsAPartOf) {
  const Value w = graph_.variable("w", {8, 16});
  const Value x = graph_.input("x", {8, 16});
  const Value gradient = relu(x);
  const Value rows = concat(std::vector<Value>{gradient, tanh(x)}, 0);
  const auto lines = text(*make(contributing(reduce_sum(rows), {{w, gradient}})));
  EXPECT_THAT(lines, testing::Contains("concat"));
  EXPECT_THAT(lines, testing::Not(testing::Contains("copy")));
}

}  // namespace
}  // namespace paceline
