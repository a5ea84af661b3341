// For tests: the state machine of a ps, driven by hand.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "params/protocol/ps_task.h"
#include "params/protocol/testing/outbox_text.h"

namespace paceline {

/// ps:0 of a job with three workers. Tests set its time, `now`.
struct PsMachine {
  explicit PsMachine(const PsTaskOptions& options = PsMachine::options())
      : task(
            options,
            [this](const Declare&) {
              ++taken;
              return std::vector<std::int32_t>();
            },
            now) {}
  static PsTaskOptions options() {
    PsTaskOptions options;
    options.workers = 3;
    options.cluster_id = "job";
    options.incarnation = 9;
    options.join_timeout = std::chrono::seconds(60);
    options.reconnect_timeout = std::chrono::seconds(30);
    options.warm_steps = 1;
    return options;
  }
  static Hello hello_of(int worker, std::uint64_t incarnation = 1) {
    Hello hello;
    hello.role = "worker";
    hello.index = worker;
    hello.cluster_id = "job";
    hello.incarnation = incarnation;
    return hello;
  }

  void accept(PeerId peer) { task.accepted(peer, now, out); }
  void received(PeerId peer, MessageType type, ControlMessage::Body body = {},
                std::uint64_t step = 0) {
    task.received(peer, {type, std::move(body), step}, now, out);
  }
  /// Returns the ps's answer to a hello on a new connection.
  std::vector<std::string> greet(PeerId peer, const Hello& hello) {
    out.clear();
    accept(peer);
    received(peer, MessageType::kHello, hello);
    return take_text(out);
  }
  /// Returns the reason in the refusal of a hello.
  std::string why_not(const Hello& hello) {
    accept(++strangers);
    received(strangers, MessageType::kHello, hello);
    EXPECT_EQ(task.worker(strangers), -1);
    std::string why = sent<std::string>(out);
    const std::string id = std::to_string(strangers);
    EXPECT_THAT(take_text(out), ::testing::Contains(id + " refuse"));
    return why;
  }
  /// Worker i joins on connection 10 + i, and the chief initialises the variables.
  void start(int workers = 3) {
    for (int i = 0; i < workers; ++i) {
      greet(10 + PeerId(i), hello_of(i));
      received(10 + PeerId(i), MessageType::kDeclare, declare);
    }
    received(10, MessageType::kWriteEnd, std::int64_t{0});
    out.clear();
  }
  void make_step(PeerId peer, std::int64_t step) {
    task.end_step(peer, step, task.begin_step(peer, step), now, out);
  }

  TimePoint now{};
  Declare declare;
  int taken = 0;
  PeerId strangers = 100;
  PsTask task;
  Outbox out;
};

}  // namespace paceline
