// A session as the only worker of a ps: every loss is that of one process, however its runs end and
// whatever happens between steps.
#include <gtest/gtest.h>

#include <algorithm>

#include "paceline/hooks.h"
#include "paceline/ops.h"
#include "paceline/session.h"
#include "train/testing/served.h"

namespace paceline {
namespace {

/// A model of words: a table, a state that is carried from step to step, a dense layer.
class WordsSession {
 public:
  WordsSession(const Cluster& cluster, const RunOptions& run) {
    ids_ = graph_.input("ids", {6}, DType::kInt32);
    const Value state = graph_.local("state", {6, 4});
    const Value words =
        embedding_lookup(graph_.variable("table", {20, 4}, Initializer::uniform(-1, 1)), ids_);
    const Value h = tanh(add(words, scale(state, 0.5f)));
    const Value y = graph_.constant(Tensor(DType::kFloat32, {6, 3}));
    graph_.assign(state, h);
    const Value loss = reduce_mean(square(sub(dense(h, 3, "out"), y)));
    loss_ = loss;
    MinimizeOptions options;
    options.clip_norm = 0.3f;
    options.learning_rate = Schedule::staircase(0.9, 7);
    session_ = std::make_unique<Session>(minimize(loss, Sgd{0.5f}, options), cluster, run);
    session_->add(Forward(*this));
  }

  /// Runs an epoch of `batches` batches, which goes on where the last run has stopped.
  bool run(int batches) {
    session_->reset_locals(graph_);
    int left = batches;
    return session_->run([&, this](Feed& feed) {
      if (left-- == 0) return feed.stop();
      fill(feed);
    });
  }
  /// Makes one step.
  bool step() {
    const std::int64_t before = fed_;
    const bool made = session_->step([this](Feed& feed) { fill(feed); }).has_value();
    EXPECT_EQ(fed_, before + 1) << "what is fed is for this step";
    return made;
  }
  bool note_step(Session& session, const StepResult& result) {
    losses_.push_back(result.loss);
    EXPECT_EQ(session.position().numbers.at("fed"), result.step) << "not of what was fed ahead";
    if (result.step % 4 == 0) {
      losses_.push_back(session
                            .evaluate(graph_, {&loss_, 1},
                                      [this](Feed& feed) {
                                        std::ranges::fill(feed.data<std::int32_t>(ids_),
                                                          std::int32_t{3});
                                      })[0]
                            .item<float>());
    }
    return result.step != end_at;
  }
  const std::vector<double>& losses() const { return losses_; }
  std::int64_t steps() const { return session_->last_step().step; }
  std::int64_t end_at = -1;

 private:
  struct Forward : Hook {
    explicit Forward(WordsSession& to) : to(to) {}
    bool after_step(Session& session, const StepResult& result) override {
      return to.note_step(session, result);
    }
    WordsSession& to;
  };

  void fill(Feed& feed) {
    const auto ids = feed.data<std::int32_t>(ids_);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ids[i] = std::int32_t((std::size_t(fed_) * 7 + i * i) % 20);
    }
    EXPECT_EQ(feed.step(), fed_);
    feed.position().numbers["fed"] = ++fed_;
  }

  Graph graph_;
  Value ids_, loss_;
  std::unique_ptr<Session> session_;
  std::int64_t fed_ = 0;
  std::vector<double> losses_;
};

TEST(ServedSession, EveryLossIsThatOfOneProcess) {
  RunOptions run;
  run.quiet = true;
  run.steps = 40;
  Served served;
  Cluster one, apart = served.cluster();
  one.threads = 1;
  apart.links.kind = "tcp";  // where rows are asked for ahead
  WordsSession near(one, run), far(apart, run);
  for (WordsSession* session : {&near, &far}) {
    EXPECT_TRUE(session->run(9));
    session->end_at = 14;
    EXPECT_FALSE(session->run(20)) << "a hook has ended it";
    EXPECT_EQ(session->steps(), 14);
    EXPECT_TRUE(session->run(session == &far ? 3 : 4)) << "far begins with what was fed";
    EXPECT_FALSE(session->run(100)) << "40 steps are reached";
    EXPECT_EQ(session->steps(), 40);
  }
  EXPECT_EQ(near.losses(), far.losses());
  EXPECT_GT(near.losses().front(), 0);
}

TEST(ServedSession, StepsOneAtATimeAreThoseOfOneProcess) {
  RunOptions run;
  run.quiet = true;
  run.steps = 30;
  Served served;
  Cluster one, apart = served.cluster();
  one.threads = 1;
  apart.links.kind = "tcp";  // where rows are asked for ahead
  WordsSession near(one, run), far(apart, run);
  EXPECT_TRUE(near.run(12));
  for (int i = 0; i < 12; ++i) EXPECT_TRUE(far.step());
  for (WordsSession* session : {&near, &far}) EXPECT_TRUE(session->run(8));
  for (WordsSession* session : {&near, &far}) {
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(session->step());
  }
  EXPECT_EQ(near.losses(), far.losses());
  EXPECT_GT(near.losses().front(), 0);
}

}  // namespace
}  // namespace paceline
