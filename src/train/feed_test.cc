// Inputs that a feed may leave out, and values that it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "base/testing/error_of.h"
#include "paceline/error.h"
#include "paceline/op.h"
#include "train/testing/session_fixture.h"

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using FeedTest = SessionTest;

TEST_F(FeedTest, AnotherTypeThanTheInputsIsRefusedAndBothAreNamed) {
  const Value labels = graph_.input("labels", {16}, DType::kInt32);
  Session session(graph_, cluster_, run_);
  const std::string message = error_of(ErrorCode::kInvalidArgument, [&] {
    session.evaluate(labels, [&](Feed& feed) { feed.data<std::int64_t>(labels)[15] = 1; });
  });
  EXPECT_THAT(message, AllOf(HasSubstr("'labels'"), HasSubstr("int32 (16)"), HasSubstr("int64")));
  EXPECT_EQ(error_of(ErrorCode::kInvalidArgument,
                     [&] {
                       session.evaluate(labels, [&](Feed& feed) {
                         feed.view(labels).as<std::int64_t>()[15] = 1;
                       });
                     }),
            "[tensor] int32 (16) read as int64");
  EXPECT_THAT(
      error_of(ErrorCode::kInvalidArgument,
               [&] { session.evaluate(labels, [&](Feed& f) { f.set(labels, Tensor()); }); }),
      HasSubstr("the tensor is empty"));
}

TEST_F(FeedTest, AnOutputAndAKernelOfOnesOwnAreReadAsTheirTypeOnly) {
  OpRegistry ops = copy_of_builtin_ops();
  Op op;
  op.name = "wrong";
  op.infer = [](const OpInputs& in) { return std::vector<ValueType>{in.types[0]}; };
  op.no_gradient = "it is for tests";
  op.cost = [](const Node&) { return Cost{}; };
  op.kernel = [](const Node&, const KernelCall& call) { call.outputs[0].as<double>()[0] = 1; };
  register_op(ops, std::move(op));
  Graph graph(ops);
  const Value x = graph.input("x", {2});
  const Value wrong = graph.apply("wrong", {x}), right = add(x, x);
  Session session(graph, cluster_, run_);
  const auto feed = [&](Feed& f) { f.normal(x); };
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { session.evaluate(wrong, feed); }),
              AllOf(HasSubstr("float32 (2)"), HasSubstr("float64")));
  const auto views = session.evaluate_in_place(graph, {&right, 1}, feed);
  EXPECT_THROW(views[0].as<std::int32_t>(), Error);
}

TEST_F(FeedTest, AnInputThatIsNotFedInAStepIsNamed) {
  Session session(training(), cluster_, run_);
  const auto only_x = [&](Feed& feed) { feed.normal(x_); };
  const auto first = [&](Feed& f) { f.step() == 0 ? feed(f) : only_x(f); };
  EXPECT_THAT(error_of(ErrorCode::kFailedPrecondition, [&] { session.run(first); }),
              AllOf(HasSubstr("'y'"), HasSubstr("set_once")));
  EXPECT_EQ(session.last_step().step, 1);
  EXPECT_THAT(error_of(ErrorCode::kFailedPrecondition, [&] { session.evaluate(loss_, only_x); }),
              HasSubstr("'y'"));
  EXPECT_THAT(error_of(ErrorCode::kFailedPrecondition, [&] { session.evaluate(loss_, nullptr); }),
              HasSubstr("'x'"));
  EXPECT_NO_THROW(session.evaluate(prediction_, only_x)) << "y is not read";
}

TEST_F(FeedTest, AnInputIsSetOnceAndKeepsItsValues) {
  Session session(graph_, cluster_, run_);
  const Tensor ones(DType::kFloat32, {16, 1}), twos(DType::kFloat32, {16, 1});
  for (float& x : ones.data<float>()) x = 1;
  for (float& x : twos.data<float>()) x = 2;
  const Value sum = reduce_sum(x_);
  Session sums(graph_, cluster_, run_);
  const auto with = [&](const Tensor& tensor) {
    return sums.evaluate(sum, [&](Feed& feed) { feed.set_once(x_, tensor); }).item<float>();
  };
  EXPECT_EQ(with(ones), 16);
  EXPECT_EQ(sums.evaluate(sum, nullptr).item<float>(), 16);
  EXPECT_EQ(with(twos), 32) << "another tensor";
  EXPECT_EQ(with(ones), 16);
  EXPECT_EQ(sums.evaluate(sum, [&](Feed& f) { f.set(x_, twos); }).item<float>(), 32);
  EXPECT_THROW(sums.evaluate(sum, nullptr), Error) << "it was fed anew, for that step alone";
  EXPECT_EQ(with(ones), 16);
}

TEST_F(FeedTest, WhatIsKeptMustHaveBeenFed) {
  Session session(training(), cluster_, run_);
  EXPECT_THAT(
      error_of(ErrorCode::kFailedPrecondition, [&] { session.step([&](Feed& f) { f.keep(x_); }); }),
      HasSubstr("'x'"));
  EXPECT_TRUE(session.step([&](Feed& f) {
    feed(f);
    f.keep(x_).keep(y_);
  }));
  EXPECT_TRUE(session.step([](Feed&) {}));
}

TEST_F(FeedTest, APositionIsThatOfTheLastStepMadeAndComesBack) {
  const TemporaryFolder folder;
  run_.out = folder.path();
  run_.summary_every = {};
  const auto counting = [&](Feed& f) {
    std::int64_t& batch = f.position().numbers["batch"];
    EXPECT_EQ(batch, f.step());
    if (batch == 5 && f.position().numbers["stopped"] == 0) {
      f.position().numbers["stopped"] = 1;
      return f.stop();
    }
    ++batch;
    feed(f);
  };
  {
    Session session(training(), cluster_, run_);
    EXPECT_TRUE(session.position().empty());
    EXPECT_TRUE(session.run(counting));
    EXPECT_EQ(session.position().numbers.at("batch"), 5);
    EXPECT_EQ(session.position().numbers.at("stopped"), 1);
    session.step(counting);
    EXPECT_EQ(session.position().numbers.at("batch"), 6);
  }
  run_.resume = true;
  Session session(training(), cluster_, run_);
  EXPECT_EQ(session.position().numbers.at("batch"), 6);
  session.step(counting);
  EXPECT_EQ(session.position().numbers.at("batch"), 7);
}

}  // namespace
}  // namespace paceline
