// The driver that runs a group's state machine (protocol/collective_group.h) on real links and
// threads. It keeps the connections with the other workers, serialises their events, makes the
// reduction do what the state machine asks for, and sends values to joiners.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "exec/parameter_store.h"
#include "net/heartbeat_thread.h"
#include "net/link.h"
#include "params/clock_questions.h"
#include "params/collective/collective_options.h"
#include "params/collective/link_collectives.h"
#include "params/protocol/collective_group.h"
#include "params/protocol/exchanged_sums.h"
#include "params/shard/variable_memory.h"
#include "params/shared_record_blocks.h"
#include "params/wakeup.h"
#include "params/wire/task_state.h"

namespace paceline {

/// The states of the other workers, collected while a checkpoint is written. The inbox keeps the
/// last state that each worker has told. Thread-safe.
class StateInbox {
 public:
  /// Begins a new save that asks `workers` for their states. Does not ask workers that train no
  /// more and have already told their states. Returns the workers to ask.
  std::set<int> ask(std::uint64_t save, std::set<int> workers) {
    const std::lock_guard lock(mutex_);
    save_ = save;
    for (const int worker : told_last_) workers.erase(worker);
    asked_ = std::move(workers);
    return asked_;
  }
  /// Takes a worker's state. `save` is the number of the save that asked for it; 0: the worker
  /// trains no more, and tells its last state.
  void put(int worker, std::uint64_t save, TaskState state) {
    {
      const std::lock_guard lock(mutex_);
      states_[worker] = std::move(state);
      if (save == 0) told_last_.insert(worker);
      if (save == save_ || save == 0) asked_.erase(worker);
    }
    changed_.notify_all();
  }
  /// Notes that the connection with the worker has ended, so no save waits for its state any
  /// longer.
  void lose(int worker) {
    {
      const std::lock_guard lock(mutex_);
      asked_.erase(worker);
      told_last_.erase(worker);
    }
    changed_.notify_all();
  }
  /// Returns the states once every worker that was asked has told its state or was lost, or at the
  /// deadline. `silent` gets the workers that had done neither by the deadline.
  std::vector<TaskState> wait(Deadline deadline, std::set<int>& silent) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline.time(), [this] { return asked_.empty(); });
    silent = asked_;
    std::vector<TaskState> states;
    for (const auto& [worker, state] : states_) states.push_back(state);
    return states;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t save_ = 0;
  std::set<int> asked_, told_last_;
  std::map<int, TaskState> states_;
};

/// A worker's variables in an all-reduce: all values and slots, which joiners receive. Not
/// thread-safe: a caller that changes values must make sure that nobody reads them meanwhile.
class HeldVariables {
 public:
  /// All values are zeros at first. Throws kInvalidArgument as VariableMemory does, and also when
  /// two variables have one name.
  explicit HeldVariables(std::vector<VariableSpec> variables);

  std::span<const VariableSpec> specs() const { return specs_; }
  /// Throws kNotFound for an unknown variable.
  VariableMemory& at(VariableId variable);
  std::deque<VariableMemory>& all() { return memories_; }

  /// Bytes of one array, as a frame carries them. In the frame's header, `id` is the variable, and
  /// `flags` is the number of the array: 0 for the value, then the slots.
  struct Range {
    std::uint32_t variable = 0;
    std::uint16_t array = 0;
    std::size_t offset = 0;
    std::span<const std::byte> bytes;
  };
  /// Returns all values and slots, in the order in which the receiver must write them. Scalars are
  /// copied to `scalars`, which must outlive the ranges.
  std::vector<Range> ranges(std::deque<std::int64_t>& scalars) const;
  /// Throws kDataLoss for a range outside a variable.
  void write(std::uint32_t variable, std::uint16_t array, std::size_t offset,
             std::span<const std::byte> bytes);

 private:
  const std::vector<VariableSpec> specs_;
  std::vector<Tensor> values_;
  std::deque<VariableMemory> memories_;
};

class CollectiveDriver;

/// The records that this member of an all-reduce was dealt. The driver deals them, and may end
/// before the pipeline does.
class GroupRecordBlocks : public SharedRecordBlocks {
 public:
  explicit GroupRecordBlocks(CollectiveDriver& driver) : driver_(&driver) {}
  void leave();
  /// Makes the pipeline ask again, since there may be more records, or records that it took may be
  /// revoked. Call it without locks.
  void look_again() { tell_changed(); }

  RecordRange take(std::int64_t most) override;
  bool over() const override;
  bool revoked() const override;
  void check_wait() override;

 protected:
  std::int64_t began(const Wish& wish) override;

 private:
  mutable std::mutex mutex_;
  CollectiveDriver* driver_;  // null: the driver has ended
  std::int64_t limit_ = 0;
};

/// One connection with another worker of an all-reduce. It hands arriving frames to the driver. The
/// peer's identity is unknown until both sides have said who they are.
class CollectiveConnection : public Receiver {
 public:
  /// `expected` is the worker that this worker has called, or −1 when the peer has called.
  CollectiveConnection(CollectiveDriver& driver, int expected, TimePoint since,
                       Timeline* timeline = nullptr)
      : clock(timeline, fmt::format("worker:{}", expected)),
        driver_(driver),
        expected_(expected),
        since_(since) {}

  std::span<std::byte> place_payload(const FrameHeader& header) override;
  void on_frame(const FrameHeader& header, std::span<const std::byte> payload) override;
  void on_shared(std::uint32_t id, std::shared_ptr<const SharedMemory> memory) override;
  void on_closed(const Error& error) override;

  int expected() const { return expected_; }
  TimePoint since() const { return since_; }
  /// The peer's worker index; −1: unknown. The driver sets it once.
  std::atomic<int> worker{-1};
  std::atomic<bool> closed{false};
  std::uint64_t incarnation = 0;           // of the worker's process
  std::optional<TimePoint> ended;          // the time from which nothing more can arrive
  std::shared_ptr<Connection> connection;  // null until it is made
  StateFrames state;                       // the frames of a task's state that have arrived so far
  ClockQuestions clock;                    // questions to the peer, if this worker made the call
  /// The peer was asked for its progress and has not answered yet. Protected by the driver's lock.
  bool progress_asked = false;

 private:
  CollectiveDriver& driver_;
  const int expected_;
  const TimePoint since_;
  std::vector<std::byte> received_;
};

/// One worker's part of an all-reduce. One thread, the step thread, joins, makes steps and leaves;
/// connections call the driver from threads of the link.
class CollectiveDriver : public PeerSender, public ReductionListener {
 public:
  /// Begins to listen at the worker's address. Throws as Link::listen does, naming the task.
  CollectiveDriver(const CollectiveOptions& options, HeldVariables& variables);
  ~CollectiveDriver() override;

  // The calls of the step thread.
  /// Returns once this worker has met the other workers, or those that train.
  void join();
  bool founded() const;
  /// The workers with which this worker is not connected.
  std::vector<std::int32_t> unreached() const;
  void initialise(std::int64_t step, const std::vector<TaskState>& states);
  /// Waits until this worker has values.
  void wait_values();
  bool has_values() const { return shown_.has_values; }
  /// True when this worker has had values. While no step waits, nothing overwrites them, even if
  /// they no longer count because the group went on without this worker.
  bool had_values() const { return shown_.had_values; }
  std::int64_t step() const { return shown_.step; }
  /// Begins a step that reduces these buckets. First waits until this worker may begin a step.
  void begin_step(const std::shared_ptr<const std::vector<Bucket>>& buckets, std::int64_t examples);
  /// Replaces the numbers, in the middle of a step, by their sums over all members. Throws
  /// RepeatStep when the members have changed.
  void add_up(std::span<double> sums);
  /// Confirms that the ps tasks have this step's contribution. Only then may this worker tell the
  /// others that its sums are whole. Only with CollectiveOptions::rounds.
  void confirm_given();
  /// Confirms that the ps tasks have counted `step` global steps with the contributors that this
  /// worker knows. Only with CollectiveOptions::rounds.
  void confirm_counted(std::int64_t step);
  /// The number of global steps before the step that was begun last.
  std::int64_t begun_step() const { return begun_step_; }
  /// The members of the last step that this worker has committed.
  std::vector<std::int32_t> contributors() const;
  /// Waits until the step is decided. Returns true if it is committed, so that its sums must be
  /// applied; false if this worker was given newer values instead. With sync_batch_norm, throws
  /// RepeatStep when the members have changed.
  bool wait_committed();
  /// Locks the values, so that the step thread can change them.
  std::unique_lock<std::mutex> change_values();
  /// Tells all other workers why the job ends, and throws that error here, too.
  [[noreturn]] void end_job(const Error& why);
  /// Waits until another worker ends the job, and throws its error; if none does in time, throws
  /// `otherwise`.
  [[noreturn]] void wait_job_end(const std::string& otherwise);
  /// Notes that the committed step has been applied.
  void set_applied();
  /// Prepares the step thread to read or write values: from now on nothing else may change them.
  void use_values();
  Collectives& collectives() { return *collectives_; }

  bool all_warm() const { return shown_.all_warm; }
  bool all_done() const { return shown_.all_done; }
  bool any_done() const { return shown_.any_done; }
  bool training_ended() const { return shown_.ended; }
  bool saves() const { return shown_.saves; }
  /// True when this worker was interrupted in a step and has abandoned that step. The other workers
  /// may take long to end the step.
  bool left_step() const { return shown_.left_step; }
  void set_done();
  void end_training();
  bool wait_all_retired(Deadline deadline);
  EndSave wait_end_save(Deadline deadline, bool patient);
  void set_saved();
  void goodbye();
  std::int64_t next_own_step() const;
  /// Null if no records are shared out.
  const std::shared_ptr<GroupRecordBlocks>& records() const { return records_; }
  RecordSet unused_records() const;
  std::optional<TaskState> restored() const;

  std::uint64_t state_asked() const { return shown_.state_asked; }
  void send_state(const TaskState& state);
  void ask_states();
  /// Asks all connected workers for their progress. Any thread may call.
  void ask_progress();
  StateInbox& inbox() { return inbox_; }

  std::vector<std::shared_ptr<Connection>> connections() const;
  StoreAccount account() const;
  std::vector<StoreLink> links() const;

  // The calls of connections.
  void received(CollectiveConnection& from, const FrameHeader& header,
                std::span<const std::byte> payload);
  void shared(CollectiveConnection& from, std::uint32_t id,
              std::shared_ptr<const SharedMemory> memory);
  void closed(CollectiveConnection& from, const Error& error);

  // The calls of the reduction.
  void send(int worker, const FrameHeader& header, std::span<const std::byte> payload,
            void (*sent)(void* context), void* context) override;
  void send_copy(int worker, const FrameHeader& header,
                 std::span<const std::byte> payload) override;
  void reduced(std::uint64_t tag) override;
  void rested() override;
  void failed(const Error& error) override;

  // The calls of a pipeline.
  void begin_records();
  RecordRange take_records(std::int64_t limit, std::int64_t most);
  bool records_over(std::int64_t limit);
  bool records_revoked();
  /// Throws when the job has failed, or when this worker must stop.
  void check_job();

 private:
  /// The state that other threads may read without the lock.
  struct Shown {
    std::atomic<bool> met{false}, has_values{false}, had_values{false}, may_begin{false},
        all_warm{false}, any_done{false}, all_done{false}, all_retired{false}, ended{false},
        saves{false}, failed{false}, came_too_late{false}, left_step{false};
    std::atomic<std::int64_t> step{0}, commits{0}, takes{0};
    std::atomic<std::uint64_t> state_asked{0}, epoch{0};
  };

  /// Calls event() under the lock, then does what the state machine asks for, and publishes the new
  /// state.
  template <typename Event>
  auto change(Event&& event) {
    struct Finish {
      CollectiveDriver& driver;
      std::unique_lock<std::mutex> lock;
      ~Finish() {
        driver.follow();
        driver.flush();
        driver.show();
        lock.unlock();
        driver.wakeup_.notify();
        driver.tell_dealt();
      }
    };
    const Finish finish{*this, std::unique_lock(mutex_)};
    return event();
  }
  void tick();
  void tell_dealt();
  void follow();
  void flush();
  void show();
  void wait(const std::function<bool()>& ready, const char* what);
  void leave_step_if_interrupted(std::optional<TimePoint>& leave_at);
  void fail(const Error& error);
  void check() const;
  // Engines.
  std::unique_ptr<Collectives> make_collectives();
  std::uint64_t fingerprint_of_step(const std::vector<Bucket>& buckets) const;
  void tell_end(const Error& why);
  void lose_member(int worker, const Error& why);
  static std::uint64_t tag_of(std::uint64_t epoch, std::int64_t step);
  ReductionGroup reduction_group() const;
  void park();
  template <typename Ready>
  void unpark(Ready&& ready);
  void wait_in_step(const std::function<bool()>& ready);
  bool must_repeat() const;
  void finish_sums();
  void take_sums(int worker, const FrameHeader& header, std::span<const std::byte> payload);

  // Connections.
  void listen();
  Receiver* accept(std::shared_ptr<Connection> connection);
  void keep_connected();
  void connect_missing();
  void connect(int worker);
  void close_idle();
  Hello hello(int to) const;
  void take_greeting(CollectiveConnection& from, const FrameHeader& header,
                     std::span<const std::byte> payload);
  void take_hello(CollectiveConnection& from, const Hello& theirs);
  void take_welcome(CollectiveConnection& from, const Welcome& welcome);
  void count_ended(const CollectiveConnection& from);
  static void add_link(StoreLink& link, const CollectiveConnection& of);
  void identify(CollectiveConnection& from, int worker, std::uint64_t incarnation);
  void close_later(CollectiveConnection& peer, Duration patience);
  void send_message(const CollectiveConnection& to, const ControlMessage& message) const;
  std::shared_ptr<Connection> connection_of(int worker) const;

  // Values of joiners, and states.
  void take_value_frame(int worker, const FrameHeader& header, std::span<const std::byte> payload);
  bool takes_values_of(std::uint64_t epoch);
  void ask_clocks();
  void tell_progress(int worker);
  void hear_progress(CollectiveConnection& from, std::string text);
  void take_state(CollectiveConnection& from, const FrameHeader& header,
                  std::span<const std::byte> payload);
  void send_lacking_values();
  void send_values(int worker, std::uint64_t epoch, std::int64_t step);
  void send_state_frames(int worker, const TaskState& state, std::uint64_t save);

  TimePoint now() const { return options_.clock->now(); }
  std::string text_of(int worker) const;

  const CollectiveOptions& options_;
  HeldVariables& variables_;
  const ContributionLayout layout_;
  const std::uint64_t incarnation_, fingerprint_;

  mutable std::mutex mutex_;
  std::condition_variable keeper_wakes_;
  bool stopping_ = false, leaving_ = false;
  CollectiveGroup group_;
  Outbox out_;
  /// The first two are tags of attempts; rests_for_ is the number of an epoch.
  std::uint64_t opened_ = 0, started_ = 0, rests_for_ = 0;
  std::uint64_t begun_tag_ = 0, begun_epoch_ = 0;
  std::uint64_t reduced_ = 0;  // the tag of an attempt
  bool given_ = true;          // the ps tasks have the whole contribution of the step
  std::int64_t begun_step_ = 0;
  ExchangedSums exchanged_;
  std::int64_t applied_ = 0, begun_commits_ = 0, begun_takes_ = 0;
  bool parked_ = true;  // the step thread waits, and reads no values
  int receives_from_ = -1;
  /// On the founder: restored states of the other workers, until they are sent.
  std::vector<TaskState> restored_;
  std::optional<TaskState> own_restored_;
  int state_asker_ = -1;
  std::uint64_t saves_ = 0;
  std::int64_t made_ = 0;
  std::shared_ptr<GroupRecordBlocks> records_;
  std::atomic<std::uint64_t> dealt_{0};  // the last epoch that the pipeline was told of

  std::deque<std::unique_ptr<CollectiveConnection>> peers_;
  std::vector<CollectiveConnection*> current_;  // by worker; null: none
  std::vector<StoreLink> gone_links_;           // by worker: its connections that have ended
  struct Try {
    TimePoint next{};
    std::string why;
  };
  std::vector<Try> tries_;  // by worker
  struct Closing {
    std::shared_ptr<Connection> connection;
    Deadline deadline;
  };
  std::vector<Closing> closing_;
  StoreAccount gone_;  // of connections that have ended

  std::mutex values_mutex_;  // held while values change or are sent; locked before mutex_
  Shown shown_;
  StateInbox inbox_;
  const EventFd stop_;
  mutable std::mutex error_mutex_;
  std::optional<Error> error_;
  Wakeup wakeup_;
  LinkCollectives* over_links_ = nullptr;  // the engine, if it reduces over links
  const std::unique_ptr<Collectives> collectives_;
  std::unique_ptr<Link> link_;
  std::optional<HeartbeatThread> ticks_;
  std::thread keeper_;
};

}  // namespace paceline
