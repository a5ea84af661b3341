// For tests: the state machine of a worker, driven by hand.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

#include "params/protocol/worker_task.h"

namespace paceline {

/// A worker, worker:1 by default, of a job with ps:0 and ps:1. Time begins at 0.
struct WorkerMachine {
  explicit WorkerMachine(AggregationSpec aggregation = {}, int worker = 1)
      : task(options(std::move(aggregation), worker), at(Duration(0))) {}
  static WorkerTaskOptions options(AggregationSpec aggregation, int worker) {
    WorkerTaskOptions options;
    options.worker = worker;
    options.ps = {"ps:0 at a:1", "ps:1 at b:2"};
    options.cluster_id = "job";
    options.incarnation = 7;
    options.declare.aggregation = std::move(aggregation);
    options.join_timeout = std::chrono::seconds(60);
    options.reconnect_timeout = std::chrono::seconds(30);
    options.say_after = std::chrono::seconds(2);
    return options;
  }
  static TimePoint at(Duration time) { return TimePoint(time); }

  TimePoint tick(Duration time) {
    now = at(time);
    return task.tick(now, out);
  }
  void received(int ps, MessageType type, ControlMessage::Body body = {}, std::uint64_t step = 0) {
    task.received(ps, {type, std::move(body), step}, now, out);
  }
  /// Connects to each ps in turn. Both ps tasks have then agreed on the variables.
  void join() {
    for (int ps = 0; ps < 2; ++ps) {
      tick(Duration(0));
      task.connected(ps, DType::kFloat32, out);
      received(ps, MessageType::kWelcome, Welcome{.incarnation = 3, .epoch = 4});
    }
    for (int ps = 0; ps < 2; ++ps)
      received(ps, MessageType::kDeclared,
               Declared{.initialised = false, .changed_after_reads = {}});
    out.clear();
  }
  std::string timed_out(Duration time, ErrorCode code = ErrorCode::kUnavailable) {
    try {
      tick(time);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      return error.what();
    }
    return "";
  }
  WorkerTask::Closed closed(int ps, Duration time, ErrorCode code = ErrorCode::kUnavailable,
                            const WorkerTask::Ended& ended = {.where = "ps:0 in step 3"}) {
    return task.closed(ps, Error(code, "it went away"), ended, at(time), out);
  }

  TimePoint now{};
  WorkerTask task;
  Outbox out;
};

}  // namespace paceline
