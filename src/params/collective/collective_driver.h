// The real driver of a group's state machine (protocol/collective_group.h): it keeps the
// connections with the other workers, serialises what they bring, lets the reduction do what the
// machine wants, and sends values to those that join.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "net/heartbeat_thread.h"
#include "net/link.h"
#include "params/collective/collective_connection.h"
#include "params/collective/collective_options.h"
#include "params/collective/group_record_blocks.h"
#include "params/collective/held_variables.h"
#include "params/collective/link_collectives.h"
#include "params/collective/state_inbox.h"
#include "params/protocol/collective_group.h"
#include "params/protocol/exchanged_sums.h"
#include "params/wakeup.h"

namespace paceline {

/// One thread joins, steps and leaves; connections call from threads of the link.
class CollectiveDriver : public PeerSender, public ReductionListener {
 public:
  /// Listens. Throws as Link::listen does, naming the task.
  CollectiveDriver(const CollectiveOptions& options, HeldVariables& variables);
  ~CollectiveDriver() override;

  // The calls of the step thread.
  /// Returns once this worker has met the others, or those that train.
  void join();
  bool founded() const;
  /// The workers that this one is not connected with.
  std::vector<std::int32_t> unreached() const;
  void initialise(std::int64_t step, const std::vector<TaskState>& states);
  /// Waits until this worker has values.
  void wait_values();
  bool has_values() const { return shown_.has_values; }
  /// It has had some. While no step waits, nothing writes over them, also when it has none that
  /// count, since its group went on without it.
  bool had_values() const { return shown_.had_values; }
  std::int64_t step() const { return shown_.step; }
  /// Begins a step of these buckets, once this worker may.
  void begin_step(const std::shared_ptr<const std::vector<Bucket>>& buckets, std::int64_t examples);
  /// In the middle of a step: replaces the numbers by the sums of those of all members. Throws
  /// RepeatStep when the members have changed.
  void add_up(std::span<double> sums);
  /// What the step contributes to ps tasks is there, so that this worker's sums may be called
  /// whole. Only with CollectiveOptions::rounds.
  void confirm_given();
  /// The ps tasks have counted so many global steps as this worker has them. Only with
  /// CollectiveOptions::rounds.
  void confirm_counted(std::int64_t step);
  /// The global steps before the step that was begun last.
  std::int64_t begun_step() const { return begun_step_; }
  /// The members of the last step that this worker has committed.
  std::vector<std::int32_t> contributors() const;
  /// Returns true once the step is committed, and its sums are to be applied; false when this
  /// worker was given newer values instead. With sync_batch_norm it throws RepeatStep when the
  /// members have changed.
  bool wait_committed();
  /// Holds the values while the step thread changes them.
  std::unique_lock<std::mutex> change_values();
  /// Tells all others why the job ends, and throws it here, too.
  [[noreturn]] void end_job(const Error& why);
  /// Waits for another worker to do so, and throws what it says; after a while this, if none does.
  [[noreturn]] void wait_job_end(const std::string& otherwise);
  /// The committed step has been applied.
  void set_applied();
  /// The step thread is going to read or write values, which nothing else may change from now on.
  void use_values();
  Collectives& collectives() { return *collectives_; }

  bool all_warm() const { return shown_.all_warm; }
  bool all_done() const { return shown_.all_done; }
  bool any_done() const { return shown_.any_done; }
  bool training_ended() const { return shown_.ended; }
  bool saves() const { return shown_.saves; }
  /// It was interrupted in a step, and left it: the others may be in that step for long.
  bool left_step() const { return shown_.left_step; }
  void set_done();
  void end_training();
  bool wait_all_retired(Deadline deadline);
  EndSave wait_end_save(Deadline deadline, bool patient);
  void set_saved();
  void goodbye();
  std::int64_t next_own_step() const;
  /// Null where no records are shared out.
  const std::shared_ptr<GroupRecordBlocks>& records() const { return records_; }
  RecordSet unused_records() const;
  std::optional<TaskState> restored() const;

  std::uint64_t state_asked() const { return shown_.state_asked; }
  void send_state(const TaskState& state);
  void ask_states();
  /// Asks all members for their progress. Any thread may call.
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
  /// Throws when the job has failed, or is to stop.
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

  /// Calls event() under the lock, then does what the machine wants and shows what has changed.
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
  std::uint64_t opened_ = 0, started_ = 0, rests_for_ = 0;  // tags; an epoch
  std::uint64_t begun_tag_ = 0, begun_epoch_ = 0;
  std::uint64_t reduced_ = 0;  // a tag
  bool given_ = true;          // all that the step contributes elsewhere
  std::int64_t begun_step_ = 0;
  ExchangedSums exchanged_;
  std::int64_t commits_ = 0, applied_ = 0, begun_commits_ = 0, begun_takes_ = 0;
  bool parked_ = true;  // the step thread waits, and reads no values
  int receives_from_ = -1;
  std::vector<TaskState> restored_;  // of the founder: those of the others, until they are sent
  std::optional<TaskState> own_restored_;
  int state_asker_ = -1;
  std::uint64_t saves_ = 0;
  std::int64_t made_ = 0;
  std::shared_ptr<GroupRecordBlocks> records_;
  std::atomic<std::uint64_t> dealt_{0};  // the last epoch of which the pipeline was told

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

  std::mutex values_mutex_;  // values change, or are sent; before mutex_
  Shown shown_;
  StateInbox inbox_;
  const EventFd stop_;
  mutable std::mutex error_mutex_;
  std::optional<Error> error_;
  Wakeup wakeup_;
  LinkCollectives* over_links_ = nullptr;  // the engine, unless it is another one
  const std::unique_ptr<Collectives> collectives_;
  std::unique_ptr<Link> link_;
  std::optional<HeartbeatThread> ticks_;
  std::thread keeper_;
};

}  // namespace paceline
