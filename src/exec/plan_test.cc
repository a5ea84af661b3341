#include "exec/plan.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/testing/error_of.h"
#include "exec/testing/plan_fixture.h"
#include "paceline/error.h"
#include "paceline/ops.h"

namespace paceline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::ptrdiff_t at(const std::vector<std::string>& lines, const std::string& line) {
  return std::ranges::find(lines, line) - lines.begin();
}
std::ptrdiff_t last(const std::vector<std::string>& lines, const std::string& line) {
  return lines.rend() - std::ranges::find(lines.rbegin(), lines.rend(), line) - 1;
}

// A number stands for an open dimension; a plan for that number would compute a huge batch.
TEST_F(PlanTest, AGraphWhoseOpenDimensionHasNoSizeIsRefused) {
  const Value x = graph_.input("x", {graph_.open("batch"), 3});
  EXPECT_THAT(error_of(ErrorCode::kFailedPrecondition, [&] { fetch({relu(x)}); }),
              HasSubstr("nothing says the size of batch: input 'x' is float32 (batch,3)"));
  // An input that nothing asks for may stay open.
  graph_.input("unused", {graph_.open("time"), 3});
  const Value y = graph_.input("y", {2, 3});
  EXPECT_THAT(text(*fetch({relu(y)})), ElementsAre("relu"));
}

TEST_F(PlanTest, AVariableIsNeededJustBeforeItsFirstReader) {
  const Value x = graph_.input("x", {2, 3});
  const Value v = graph_.variable("v", {3, 3});
  const Value w = graph_.variable("w", {3, 1});
  const Value y = matmul(matmul(x, v), w);
  EXPECT_THAT(text(*fetch({y})), ElementsAre("need v", "matmul", "need w", "matmul"));
}

TEST_F(PlanTest, TheStoreIsToldWhichVariablesSeveralKernelsRead) {
  const Value h = dense(graph_.input("x", {2, 3}), 3, "first");
  const Value loss = mean_squared_error(dense(h, 3, "second"), graph_.input("y", {2, 3}));
  const Training training = minimize(loss, Sgd{});
  const auto plan = make(training);
  ASSERT_EQ(plan->binding.uses.size(), 4u);
  for (const PlanBinding::Use& use : plan->binding.uses) {
    const std::string& name = specs_[std::size_t(use.variable)].name;
    // The step reads a weight forwards, and for the gradient of the layer's input; the first
    // layer's input needs no gradient.
    EXPECT_EQ(use.reread, name == "second/w") << name;
  }
}

TEST_F(PlanTest, AContributionIsWrittenInItsPlaceAndReadyAfterTheLastReadOfItsVariable) {
  const Value x = graph_.input("x", {2, 3});
  Value h = x;
  for (const char* name : {"a", "b", "c"}) h = relu(dense(h, 3, name));
  const Value loss = mean_squared_error(h, graph_.input("y", {2, 3}));
  const Training training = minimize(loss, Sgd{});
  const auto plan = make(training);
  const std::vector<std::string> lines = text(*plan);

  EXPECT_EQ(std::ranges::count(lines, "copy"), 0);
  for (const char* variable : {"a/w", "a/b", "b/w", "b/b", "c/w", "c/b"}) {
    const std::string name = variable;
    EXPECT_LT(at(lines, "need " + name), at(lines, "place " + name)) << name;
    EXPECT_LT(at(lines, "place " + name), at(lines, "ready " + name)) << name;
    EXPECT_EQ(std::ranges::count(lines, "ready " + name), 1) << name;
  }
  // The contributions of layer c are handed over while the device still computes b and a.
  EXPECT_LT(at(lines, "ready c/w"), at(lines, "place b/w"));
  EXPECT_LT(at(lines, "ready b/w"), at(lines, "place a/w"));
  EXPECT_EQ(plan->binding.uses.size(), 6u);
  EXPECT_EQ(specs_[std::size_t(plan->binding.uses[0].variable)].name, "a/w");
  EXPECT_TRUE(plan->binding.uses[0].updated);
}

TEST_F(PlanTest, ReadyComesAfterEveryInstructionThatReadsTheVariable) {
  const Value x = graph_.input("x", {4, 4});
  const Value w = graph_.variable("w", {4, 4});
  // The step reads w three times, the last time for the gradient of the first product.
  const Value loss = reduce_mean(square(matmul(matmul(matmul(x, w), w), w)));
  const Training training = minimize(loss, Sgd{});
  const auto plan = make(training);
  std::size_t ready = 0, last_read = 0;
  for (std::size_t i = 0; i < plan->instructions.size(); ++i) {
    const Instruction& instruction = plan->instructions[i];
    if (instruction.kind == Instruction::Kind::kReady) ready = i;
    for (const SlotIndex slot : instruction.inputs) {
      const Storage& storage = plan->storages[std::size_t(plan->slots[std::size_t(slot)].storage)];
      if (storage.kind == Storage::Kind::kVariable) last_read = i;
    }
  }
  EXPECT_GT(ready, last_read);
}

TEST_F(PlanTest, TheNormReadsContributionsBeforeTheyAreReady) {
  const Value x = graph_.input("x", {2, 3});
  const Value loss = mean_squared_error(dense(dense(x, 3, "a"), 3, "b"), x);
  const Training training =
      minimize(loss, Sgd{}, {.clip_norm = 5, .learning_rate = {}, .groups = {}});
  const auto plan = make(training);
  EXPECT_TRUE(plan->clipped());
  const std::vector<std::string> lines = text(*plan);
  for (const char* name : {"ready a/w", "ready b/w"}) {
    EXPECT_LT(last(lines, "global_norm"), at(lines, name));
  }
}

TEST_F(PlanTest, WhatNoKernelCanWriteInPlaceIsCopied) {
  const Value x = graph_.input("x", {3});
  const Value v = graph_.variable("v", {3});
  const Value w = graph_.variable("w", {3});
  const Value u = graph_.variable("u", {3});
  const Value doubled = scale(x, 2);
  const Value loss = reduce_sum(x);
  // The contributions are an input for v, and one value for both w and u. The second plan also
  // fetches that value.
  const Training training = contributing(loss, {{v, x}, {w, doubled}, {u, doubled}});
  const auto plan = make(training, {});
  EXPECT_EQ(std::ranges::count(text(*plan), "copy"), 2);
  const auto fetched = make(training, {doubled});
  EXPECT_EQ(std::ranges::count(text(*fetched), "copy"), 3);
}

TEST_F(PlanTest, AVariableThatContributesToAnotherIsReadBeforeItChanges) {
  const Value v = graph_.variable("v", {3});
  const Value w = graph_.variable("w", {3});
  const Training training = contributing(reduce_sum(v), {{v, w}, {w, v}});
  const std::vector<std::string> lines = text(*make(training));
  EXPECT_EQ(std::ranges::count(lines, "copy"), 2);
  EXPECT_LT(last(lines, "copy"), at(lines, "ready v"));
  EXPECT_LT(last(lines, "copy"), at(lines, "ready w"));
}

TEST_F(PlanTest, FetchesOfVariablesAreCopiedBeforeTheyChange) {
  const Value x = graph_.input("x", {3});
  const Value w = graph_.variable("w", {3});
  const Training training = contributing(reduce_sum(x), {{w, scale(x, 2)}});
  const std::vector<std::string> lines = text(*make(training, {w}));
  EXPECT_LT(at(lines, "need w"), at(lines, "copy"));
  EXPECT_LT(at(lines, "copy"), at(lines, "ready w"));
}

TEST_F(PlanTest, LocalsChangeAtTheEnd) {
  const Value h = graph_.local("h", {3});
  const Value next = scale(h, 2);
  graph_.assign(h, next);
  const Value y = reduce_sum(h);
  EXPECT_EQ(text(*fetch({y})).back(), "copy");
  const auto without = make({.graph = &graph_,
                             .fetches = {y},
                             .training = nullptr,
                             .run_assignments = false,
                             .rewrite = {}});
  EXPECT_THAT(text(*without), ElementsAre("reduce_sum"));
}

TEST_F(PlanTest, ElementWiseChainsUseOneBuffer) {
  const Value x = graph_.input("x", {1024});
  const Value y = exp(sigmoid(tanh(exp(x))));
  const auto plan =
      make({.graph = &graph_,
            .fetches = {y},
            .training = nullptr,
            .run_assignments = true,
            .rewrite = {.fold_constants = false, .merge_common = false, .fuse = false}});
  EXPECT_EQ(plan->kernels.size(), 4u);
  EXPECT_EQ(plan->arena_bytes, 4096u);
}

TEST_F(PlanTest, AnInputThatTheGraphDoesWithoutCanBeFed) {
  const Value x = graph_.input("x", {3});
  graph_.input("unused", {5});
  const auto plan = fetch({reduce_sum(x)});
  ASSERT_TRUE(plan->inputs.contains("unused"));
  const Slot& slot = plan->slots[std::size_t(plan->inputs.at("unused"))];
  EXPECT_EQ(slot.type.shape, Shape{5});
  EXPECT_NE(
      plan->storages[std::size_t(slot.storage)].offset,
      plan->storages[std::size_t(plan->slots[std::size_t(plan->inputs.at("x"))].storage)].offset);
}

class SparsePlanTest : public PlanTest {
 protected:
  // ids is any int32 value of shape (4).
  Training train(Value ids) {
    const Value rows = embedding_lookup(table_, ids);
    return minimize(reduce_mean(square(rows)), Sgd{});
  }
  Value table_ = graph_.variable("table", {10, 2});
};

TEST_F(SparsePlanTest, RowsAreAskedForByTheIdsOfLookUps) {
  const Training training = train(graph_.input("ids", {4}, DType::kInt32));
  const auto plan = make(training);
  EXPECT_TRUE(specs_[0].sparse);
  ASSERT_EQ(plan->row_reads.size(), 1u);
  EXPECT_FALSE(plan->row_reads[0].all);
  EXPECT_EQ(plan->row_reads[0].rows, 10);
  EXPECT_THAT(plan->row_reads[0].ids, ElementsAre(plan->inputs.at("ids")));
  EXPECT_EQ(plan->prologue, 0u);
  EXPECT_EQ(plan->binding.uses[0].most_rows, 4);
  const auto ready =
      std::ranges::find(plan->instructions, Instruction::Kind::kReady, &Instruction::kind);
  ASSERT_NE(ready, plan->instructions.end());
  EXPECT_EQ(ready->inputs.size(), 2u);
}

TEST_F(SparsePlanTest, ComputedIdsAreComputedBeforeTheStepBegins) {
  const Value raw = graph_.input("raw", {2, 2}, DType::kInt32);
  const Training training = train(reshape(transpose(raw), {4}));
  const auto plan = make(training);
  ASSERT_GE(plan->prologue, 1u);
  EXPECT_EQ(text(*plan)[0], "transpose");
  EXPECT_LE(std::ptrdiff_t(plan->prologue), at(text(*plan), "need table"));
}

// The ids of the next batch may be computed while results of this step are still being read.
TEST_F(SparsePlanTest, ComputedIdsAreNotJoinedWithWhatIsComputedLater) {
  const Value raw = graph_.input("raw", {2, 8}, DType::kInt32);
  const Value other = graph_.input("other", {2, 8}, DType::kInt32);
  const Value ids = transpose(raw), later = transpose(other);
  const auto with = [&](Value ids_of_rows, std::vector<Value> fetches) {
    return make(train(reshape(ids_of_rows, {ids_of_rows.shape().elements()})), std::move(fetches));
  };
  const Value both = concat(std::vector<Value>{ids, later}, 0);
  EXPECT_EQ(std::ranges::count(text(*with(ids, {both})), "concat"), 1);
  const auto early = with(both, {});
  EXPECT_EQ(early->prologue, 2u);
  EXPECT_EQ(std::ranges::count(text(*early), "concat"), 0);
}

TEST_F(SparsePlanTest, IdsFromAVariableAreRefused) {
  const Value w = graph_.variable("w", {4});
  const Training training = train(cast(w, DType::kInt32));
  try {
    make(training);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("rows of table a batch reads depends on variable w"));
  }
}

TEST_F(SparsePlanTest, AllRowsAreAskedForWhenSomethingElseReads) {
  const Training training = train(graph_.input("ids", {4}, DType::kInt32));
  const auto plan = make(training, {table_});
  ASSERT_EQ(plan->row_reads.size(), 1u);
  EXPECT_TRUE(plan->row_reads[0].all);
  EXPECT_EQ(plan->binding.uses[0].most_rows, 10);
}

TEST_F(PlanTest, RefusesVariablesThatTheStoreDoesNotHave) {
  const Value w = graph_.variable("w", {3});
  const Value y = reduce_sum(w);
  const PlanRequest request = {.graph = &graph_,
                               .fetches = {y},
                               .training = nullptr,
                               .run_assignments = true,
                               .rewrite = {}};
  EXPECT_THROW(make_plan(request, {}, *device_), Error);
  std::vector<VariableSpec> other(1);
  other[0].name = "w";
  other[0].shape = {4};
  EXPECT_THROW(make_plan(request, other, *device_), Error);
}

TEST(VariableSpecs, ListEveryVariableOnceAndSayWhatIsTrained) {
  Graph train, test;
  const Value x = train.input("x", {2, 3});
  const Value h = dense(
      embedding_lookup(train.variable("table", {5, 3}), train.input("ids", {2}, DType::kInt32)) + x,
      1, "layer");
  test.variable("layer/w", {3, 1});
  test.variable("mean", {7});
  VariableGroup group;
  group.prefix = "layer";
  group.rule = Momentum{0.5f};
  group.weight_decay = 0.25f;
  const Training training = minimize(reduce_mean(square(h)), Adam{}, {0, {}, {group}});
  const Graph* graphs[] = {&train, &test};
  const std::vector<VariableSpec> specs = variable_specs(graphs, &training);
  ASSERT_EQ(specs.size(), 4u);
  EXPECT_EQ(specs[0].name, "table");
  EXPECT_TRUE(specs[0].sparse);
  EXPECT_EQ(specs[0].rule.kind(), RuleKind::kAdam);
  EXPECT_EQ(specs[1].name, "layer/w");
  EXPECT_FALSE(specs[1].sparse);
  EXPECT_EQ(specs[1].rule.kind(), RuleKind::kMomentum);
  EXPECT_EQ(specs[1].weight_decay, 0.25f);
  EXPECT_EQ(specs[3].name, "mean");
  EXPECT_FALSE(specs[3].trained);
}

TEST(VariableSpecs, RefuseGraphsThatDisagree) {
  Graph one, other;
  one.variable("w", {3});
  other.variable("w", {4});
  const Graph* graphs[] = {&one, &other};
  try {
    variable_specs(graphs, nullptr);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("[variable w] float32 (3) in one graph, float32 (4)"));
  }
}

TEST_F(PlanTest, AContributionIsComputedAfterTheOtherReadersOfItsVariable) {
  Graph graph;
  const Value h = dense(graph.input("x", {3, 4}), 5, "layer1");
  const Training training = minimize(reduce_sum(dense(h, 2, "layer2")), Sgd{});
  const auto plan = make(training);
  const auto lines = text(*plan);
  const auto place = std::ranges::find(lines, "place layer2/w");
  ASSERT_NE(place, lines.end());
  // The plan places the contribution, computes its product, and hands it over at once, because
  // nothing reads the weight any more.
  EXPECT_EQ(*(place + 1), "matmul");
  EXPECT_EQ(*(place + 2), "ready layer2/w");
}

// A contribution is handed over after the last read of its variable. A number that is only printed,
// and was requested last, must not move that read to the end of the step.
TEST_F(PlanTest, WhatIsComputedOfVariablesAloneDelaysNoContribution) {
  Value h = graph_.input("x", {2, 3});
  for (const char* name : {"a", "b", "c"}) h = relu(dense(h, 3, name));
  const Training training = minimize(mean_squared_error(h, graph_.input("y", {2, 3})), Sgd{});
  std::vector<Value> penalties;
  for (const char* name : {"a/w", "b/w", "c/w"}) {
    penalties.push_back(reduce_sum(square(graph_.find(name))));
  }
  const auto plan = make(training, {penalties[0] + penalties[1] + penalties[2]});
  const std::vector<std::string> lines = text(*plan);
  EXPECT_LT(at(lines, "ready c/w"), at(lines, "place b/w")) << ::testing::PrintToString(lines);
  EXPECT_LT(at(lines, "ready b/w"), at(lines, "place a/w"));
  // The plan also asks for no variable before the layer that reads it.
  EXPECT_LT(at(lines, "need b/b"), at(lines, "need c/w"));
}

TEST_F(PlanTest, AKernelThatGivesItsOutputAsAWholeIsNotStreamed) {
  Graph graph;
  const Training training = minimize(reduce_sum(dense(graph.input("x", {3, 4}), 5, "a")), Sgd{});
  PlanRequest request;
  request.graph = &graph;
  request.training = &training;
  request.stream_updates = true;
  const auto plan = make(request);
  EXPECT_FALSE(std::ranges::any_of(plan->binding.uses, &PlanBinding::Use::streamed));
  EXPECT_FALSE(std::ranges::any_of(plan->instructions, &Instruction::streamed));
}

// 2^64 bytes must not wrap around to 0.
TEST_F(PlanTest, AValueThatNoMemoryHoldsIsRefused) {
  const std::vector<std::int64_t> shape = {std::int64_t{1} << 62};
  const Value wide = graph_.apply("broadcast_to", {graph_.input("x", {1})}, {{"shape", shape}});
  EXPECT_THAT(error_of([&] { fetch({wide}); }), HasSubstr("more bytes than memory has addresses"));
}

}  // namespace
}  // namespace paceline
