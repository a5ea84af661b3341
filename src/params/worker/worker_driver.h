// The driver that runs a worker's state machine (protocol/worker_task.h) on real links and threads.
// It serialises what the connections receive, connects and sends as the state machine asks, and
// publishes the machine's state.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "net/link.h"
#include "params/protocol/worker_task.h"
#include "params/shared_record_blocks.h"
#include "params/wire/record_messages.h"
#include "params/worker/ps_store.h"
#include "params/worker/worker_state.h"

namespace paceline {

/// The records that ps 0 has given to a worker, until the worker's pipeline takes them.
class PsRecordBlocks : public SharedRecordBlocks {
 public:
  /// The pipeline's access to the job, which may end before the pipeline does.
  struct Job {
    std::function<void(const RecordWish&)> ask;
    std::function<bool()> ended;  // no worker may begin another step
    std::function<void()> check;  // throws when the job has failed, or when this worker must stop
  };
  explicit PsRecordBlocks(Job job) : job_(std::move(job)) {}
  /// Notes that the job has ended.
  void leave();
  /// Adds an answer of ps 0.
  void add(const GivenRecords& given);

  RecordRange take(std::int64_t most) override;
  bool over() const override;
  bool revoked() const override { return false; }
  void check_wait() override;

 protected:
  std::int64_t began(const Wish& wish) override;

 private:
  void forget_read(std::int64_t records);
  void ask_ahead();

  mutable std::mutex mutex_;
  Job job_;
  std::deque<RecordRange> given_;  // not taken yet
  /// Ranges that the pipeline has taken and, as far as is known, no step has read yet.
  std::deque<RecordRange> taken_;
  std::int64_t read_ = 0;  // how many records come before those of taken_
  Wish wish_;
  std::int64_t ahead_ = 0;    // blocks that were asked for and not taken
  std::int64_t unasked_ = 0;  // taken records that do not make up a whole block yet
  bool over_ = false, starves_ = false;
};

class PsConnection;

/// A worker's part of a job with ps tasks. The step thread calls the driver to join, make steps and
/// leave; connections call it from threads of the link. The driver publishes the state of the state
/// machine in WorkerState (global_step, steps_done, all_warm, …).
class WorkerDriver {
 public:
  /// `options` and `core` must outlive this object.
  WorkerDriver(const PsStoreOptions& options, WorkerState& core);
  ~WorkerDriver();
  /// Sets the link and the store's connections, which must outlive the calls below.
  void use(Link& link, const std::vector<std::unique_ptr<PsConnection>>& connections);

  // Calls of a connection.
  void received(int ps, const ControlMessage& message);
  WorkerTask::Closed closed(int ps, const Error& error, const WorkerTask::Ended& ended);

  // Calls of the store.
  /// Ends the driver: no connection is made from then on. Call it before the link ends.
  void stop();
  /// Connects to every ps, says hello, and agrees on the variables. Throws kUnavailable naming a ps
  /// that was not reached within join_timeout, and kFailedPrecondition when a ps refuses.
  void join();
  /// Waits until the chief has initialised the variables. Until then tells the user what the worker
  /// waits for.
  void wait_initialised();
  bool initialised() const { return initialised_; }
  bool was_initialised() const;
  int written(int ps) const;
  void set_done();
  void end_training();
  /// Says goodbye to every ps. Once all connections are closed, all_closed() is true.
  void say_goodbye();
  bool all_closed() const { return all_closed_; }
  bool has_closed(int ps) const;
  std::int64_t next_step() const;
  const std::optional<TaskState>& restored() const;
  std::uint64_t take_state_asked();
  Staleness staleness() const;
  /// Null if no records are shared out.
  std::shared_ptr<SharedRecordBlocks> records() const { return records_; }

  // Steps.
  /// Begins a step, and returns its number. Waits while the step would be too far ahead of the
  /// slowest worker, or while the round of the previous step is open; the account counts this as
  /// kWait. Sets `outdated` to true when the values in the answers to the previous step may be too
  /// old.
  std::uint64_t begin_step(bool& outdated);
  /// Waits until the rounds of all steps before `step` are closed. The account counts this as
  /// kWait.
  void wait_for_rounds(std::int64_t step);
  /// Call it before the last frame of a step is sent.
  void end_step();

  // For rounds that the workers commit: see WorkerTask. The answers are published in WorkerState.
  void commit(const CommittedRound& committed);
  void withdraw(std::int64_t step);
  void await_round(std::int64_t round);
  /// Throws kAborted once all ps tasks have forgotten their values.
  void begin_again(const std::string& why, const BeginAgain& again);
  std::uint64_t ps_incarnation() const;

 private:
  struct Change;
  template <typename Event>
  auto change(Event&& event);
  void publish();
  void ask_records(const RecordWish& wish);
  void carry_out();
  void carry_out(const Outbox::Action& action);
  void connect(int ps);
  /// Runs on a thread of its own, which begins at the first cut, and makes connections anew.
  void keep_connected();
  /// Ticks the state machine, and carries out its actions, until ready() returns true.
  template <typename Ready>
  void wait(Ready&& ready);
  template <typename Ready>
  void wait_for_others(Ready&& ready);
  std::string awaited_others() const;
  bool in_rounds() const { return options_.aggregation.kind == AggregationKind::kRounds; }
  TimePoint now() const { return options_.clock->now(); }

  const PsStoreOptions& options_;
  WorkerState& core_;
  Link* link_ = nullptr;
  const std::vector<std::unique_ptr<PsConnection>>* connections_ = nullptr;
  /// Held while messages of the state machine are sent, to keep their order; locked before mutex_.
  std::mutex sending_mutex_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false, cut_ = false;
  std::thread keeper_;
  WorkerTask machine_;
  Outbox out_;
  std::atomic<bool> joined_{false}, initialised_{false}, all_closed_{false}, has_actions_{false};
  std::atomic<bool> may_begin_{false};
  bool permitted_ = false;  // the next step was already permitted when the previous step ended
  std::shared_ptr<PsRecordBlocks> records_;
};

}  // namespace paceline
