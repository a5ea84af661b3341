// A whole all-reduce in virtual time. Its workers have real state machines. Messages are delayed
// and lost, connections are cut, and workers are killed, stopped, restarted, late, or retire.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/virtual_time.h"
#include "params/protocol/collective_group.h"
#include "params/protocol/exchanged_sums.h"
#include "params/protocol/rounds.h"
#include "params/protocol/testing/virtual_link.h"

namespace paceline {

/// The ps tasks of a job with hybrid variables, in virtual time: the coordinator of their rounds,
/// and each worker's side of them, as in worker/ps_store.
class VirtualFence {
 public:
  using Workers = std::vector<std::int32_t>;
  struct World {
    /// Calls `act` if the process still lives, once it is not stopped.
    std::function<void(std::uint64_t process, std::function<void()> act)> on;
    /// Lets the process do what has become possible.
    std::function<void(std::uint64_t process)> look;
    /// Tells the process that the others went on without it.
    std::function<void(std::uint64_t process)> left_behind;
    std::function<void(const std::string&)> complain;
    std::function<Duration()> delay;
  };
  VirtualFence(VirtualTime& time, int workers, World world);

  void started(std::uint64_t process, int worker);
  /// The process's connections to the ps tasks have ended. The process may come back, unless it is
  /// dead.
  void cut_off(std::uint64_t process, bool dead);
  void came_back(std::uint64_t process);
  /// Until mend(), no message passes between the process and the ps tasks. Messages wait, and none
  /// is lost.
  void cut(std::uint64_t process) { workers_.at(process).cut = true; }
  void mend(std::uint64_t process);

  // A worker's calls for one step, in this order.
  /// Returns true once the process has the values after this many rounds.
  bool begin(std::uint64_t process, std::int64_t round);
  void give(std::uint64_t process);
  bool given(std::uint64_t process) const;
  void commit(std::uint64_t process, const Workers& contributors);
  /// Call it when the process's group has given the step up, and the process has the values after
  /// `round` rounds.
  void lose(std::uint64_t process, std::int64_t round);

  /// The contributors of each closed round.
  const std::vector<Workers>& closed() const { return closed_; }

 private:
  /// A worker's side.
  struct Worker {
    int index = 0;
    std::uint64_t process = 0;
    std::unique_ptr<VirtualLink> to, from;
    /// The step and the round of the contribution under way, or of the last one.
    std::int64_t step = -1, round = -1;
    bool sent = false, given = false, done = true;
    bool settled = false;                // all values of the worker are of one round
    std::optional<std::int64_t> awaits;  // the round whose opening the worker awaits
    std::int64_t rounds = 0;             // how many closed rounds the worker has been told of
    std::int64_t begun = -1;             // the round to which the worker may contribute
    /// The contributors that the worker's commit names, and the contributors of the closed round.
    Workers named, counted;
    bool told = true;  // true: the ps tasks know its commit
    bool cut = false;
    // Messages that arrive once the worker is no longer cut off.
    std::vector<std::function<void()>> held;
  };
  void arrive(std::uint64_t process, const std::function<void()>& act);
  void tell(Worker& worker, std::function<void()> act);
  void answer(std::uint64_t process, std::function<void(Worker&)> act);
  void tell_commit(Worker& worker);
  void carry_out(RoundCoordinator::Decisions& decisions);
  void answer_awaiting();
  template <typename Act>
  void coordinate(Act&& act);

  VirtualTime& time_;
  const World world_;
  RoundCoordinator coordinator_;
  std::map<std::uint64_t, Worker> workers_;      // by process
  std::map<std::uint64_t, std::int64_t> asked_;  // by process: the round that it waits for
  std::vector<Workers> closed_;
};

struct VirtualGroupOptions {
  int workers = 3;
  int faults = 12;                             // the number of faults within `faulty`
  Duration faulty = std::chrono::seconds(60);  // the time with faults, from the beginning
  Duration quiet = std::chrono::seconds(30);   // the time without faults, after `faulty`
  Duration join_timeout = std::chrono::seconds(20);
  /// Exchanges in the middle of a step, which begins again when the members change.
  int exchanges = 0;
  /// A part of each contribution goes to ps tasks, whose rounds the members commit. Workers are
  /// also cut off from the ps tasks.
  ///
  /// No worker retires. Otherwise the last workers with values might be those that were left
  /// behind, and all would have to go back to a checkpoint.
  bool hybrid = false;
  /// After the quiet time the training ends, all workers retire, and one of them saves.
  bool ends = false;
  /// A planted fault: a member does not wait until all ps tasks have its contribution.
  bool plant_hasty = false;
};

/// What has happened in a run, for a test to check. `trouble` is empty when all invariants held.
struct VirtualGroupResult {
  std::string trouble;
  std::int64_t steps = 0;  // steps that count, at the end
  std::int64_t records = 0;
  int left_behind = 0;
  int kills = 0, stops = 0, cuts = 0, ps_cuts = 0, retired = 0, joined = 0, epochs = 0,
      repeated = 0, saves = 0;
  std::uint64_t hash = 0;
  std::vector<std::string> lines;
};

class VirtualGroup {
 public:
  VirtualGroup(std::uint64_t seed, const VirtualGroupOptions& options);
  VirtualGroupResult run();

 private:
  // The steps that count: the records and the contributors of each.
  using Records = std::vector<std::vector<RecordRange>>;  // by step: the records that it has used
  using History = std::vector<std::vector<std::int32_t>>;
  struct Tag {
    std::uint64_t epoch = 0;
    std::int64_t step = 0;
    bool operator==(const Tag&) const = default;
    bool operator<(const Tag& other) const {
      return std::tie(epoch, step) < std::tie(other.epoch, other.step);
    }
  };
  struct Process {
    int worker = 0;
    std::uint64_t number = 0;  // identifies the process
    std::unique_ptr<CollectiveGroup> group;
    bool alive = true, stopped = false, retired = false, initialised = false;
    bool computes = false;
    bool cut_off = false;  // it is cut off from the ps tasks
    /// How many rounds the ps tasks have closed, as far as the process knows.
    std::int64_t counted = -1;
    // Events that wait until the process is no longer stopped.
    std::vector<std::function<void()>> held;
    std::map<Tag, std::set<int>> contributed;
    std::optional<Tag> sent, exchanges_of;
    std::unique_ptr<ExchangedSums> sums;
    int exchanged = 0;
    bool gave = false;  // the process has given its part of the next exchange
    std::set<std::pair<std::uint64_t, int>> sent_values;
    History history;
    std::int64_t own_step = 0;
    std::int64_t read = 0;  // how many records it has read since it began to take them
    Records used;           // the records that its values include
    TimePoint progressed{};
    std::optional<TimePoint> ended_since;  // the time at which it retired at the end
    bool saves = false;
  };
  struct Wire {
    /// The processes at the two ends; the process of the lower worker comes first.
    std::uint64_t ends[2] = {0, 0};
    std::unique_ptr<VirtualLink> links[2];
    bool open[2] = {false, false}, cut = false;
    TimePoint lost_after = TimePoint::max();
  };

  void start(int worker);
  void tick(std::uint64_t process);
  void connect_missing(Process& process);
  void open_wire(std::uint64_t low, std::uint64_t high);
  void close_end(std::uint64_t wire, int end, Duration within, const std::string& why);
  void close_old_wires(std::uint64_t process, int worker, std::uint64_t except);
  Wire* wire_of(const Process& process, int worker, int& end);
  void send(Process& from, int worker, std::size_t bytes, std::function<void(Process&)> act);
  /// Calls `act` if the process still lives, once it is not stopped.
  void on(std::uint64_t process, std::function<void(Process&)> act);
  void drive(Process& process, const std::function<void(Outbox&)>& event);
  void look(Process& process);
  void begin_exchanges(Process& process);
  void exchange(Process& process);
  void give_sums(Process& process, Tag tag);
  void finish_exchange(Process& process);
  static std::uint64_t number_of(const Tag& tag) {
    return tag.epoch * 0x9e3779b97f4a7c15u + std::uint64_t(tag.step) + 1;
  }
  void contribute(Process& process);
  void finish_if_whole(Process& process);
  // Parts on ps tasks.
  void make_fence();
  bool may_contribute(Process& process);
  void count_rounds(Process& process);
  void fall_behind(std::uint64_t process);
  void check_rounds(const Process& process);
  void take_values(Process& process, std::uint64_t epoch, const History& history,
                   const Records& used);

  void fault();
  void kill(Process& process, bool comes_back = true);
  void stop(Process& process);
  void cut();
  void cut_from_ps(Process& process);
  void retire(Process& process);
  bool can_spare(const Process& process) const;
  Process* random_process();
  bool ending() const { return options_.ends && time_.now() >= end_of_faults_ + options_.quiet; }
  void run_end();
  void kill_at_end();
  void end(Process& process);
  void leave(Process& process);
  void check_saves();
  void check_progress();
  void check_end();
  std::string text_of(const Process& process) const;
  void complain(const std::string& trouble);
  Process* find(std::uint64_t process);
  Process* of_worker(int worker);
  Duration delay();

  const VirtualGroupOptions options_;
  VirtualTime time_;
  std::map<std::uint64_t, std::unique_ptr<Process>> processes_;
  std::map<std::uint64_t, Wire> wires_;
  std::map<std::pair<int, int>, TimePoint> apart_until_;  // by two workers, the lower first
  std::uint64_t made_ = 0;
  struct Save {
    std::uint64_t process = 0;
    std::int64_t step = 0;
    TimePoint begun, ended;  // ended is the largest time if the process was killed
  };
  std::vector<Save> saves_;  // saves of the end
  VirtualGroupResult result_;
  TimePoint end_of_faults_, end_, last_fault_{};
  std::unique_ptr<VirtualFence> fence_;  // only if hybrid
  std::set<std::pair<std::uint64_t, std::vector<std::int32_t>>> epochs_;
  void take_records(Process& process);
  void use_records(Process& process);
  void check_records(Process& process);
  /// The records from which each step of a worker was made, by step and worker, and then by the
  /// epoch in which the step began.
  std::map<std::pair<std::int64_t, int>, std::map<std::uint64_t, std::vector<RecordRange>>> read_;
};

}  // namespace paceline
