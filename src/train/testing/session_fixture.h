// For tests: a small model to make sessions of.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "paceline/ops.h"
#include "paceline/session.h"

namespace paceline {

/// y = 2x − 1, learned by one dense layer.
class SessionTest : public ::testing::Test {
 protected:
  SessionTest() {
    x_ = graph_.input("x", {16, 1});
    y_ = graph_.input("y", {16, 1});
    prediction_ = graph_.named("prediction", dense(x_, 1, "layer"));
    loss_ = graph_.named("loss", mean_squared_error(prediction_, y_));
    run_.quiet = true;
    cluster_.threads = 1;
  }

  void feed(Feed& feed) const {
    feed.normal(x_);
    const auto x = feed.data<float>(x_);
    const auto y = feed.data<float>(y_);
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = 2 * x[i] - 1;
  }
  std::function<void(Feed&)> feeding() const {
    return [this](Feed& f) { feed(f); };
  }
  Training training() { return minimize(loss_, Sgd{.learning_rate = 0.1f}); }

  Graph graph_;
  Value x_, y_, prediction_, loss_;
  Cluster cluster_;
  RunOptions run_;
};

}  // namespace paceline
