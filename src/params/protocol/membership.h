// The members of a job as one ps sees them: a plain state machine. Events and their times go in,
// answers come out; no thread, socket or clock inside.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "params/wire/message.h"

namespace paceline {

struct MembershipOptions {
  int workers = 0;
  Duration join_timeout{};
  /// How long the job waits, after the last step, for a worker that never joined.
  Duration late_start{};
  std::int64_t warm_steps = 10;  // own steps after which a worker counts as warm
  std::uint64_t first_epoch = 1;
};

/// Calls about a worker carry the incarnation of its process. Calls about an older process do
/// nothing.
class Membership {
 public:
  Membership(const MembershipOptions& options, TimePoint now);

  /// A worker says hello. Returns why it may not join; empty: it has joined. A process with a newer
  /// incarnation replaces the worker's older process, and goes on at the task's next step,
  /// applied(). `replaced` is then true if the older process was still connected. A process that
  /// was lost before it began a step may join again.
  std::string join(int worker, std::uint64_t incarnation, TimePoint now, bool& replaced);
  /// A worker that was cut off has a connection again, as the same incarnation. Returns why it may
  /// not come back; empty: it is back.
  std::string come_back(int worker, std::uint64_t incarnation, TimePoint now);
  /// The worker's connection was cut, and the worker may come back. Nobody waits for the worker,
  /// but the job does not end before the worker is back or lost.
  void cut_off(int worker, std::uint64_t incarnation, TimePoint now);
  void lose(int worker, std::uint64_t incarnation, TimePoint now);
  void say_goodbye(int worker, std::uint64_t incarnation, TimePoint now);
  void set_done(int worker, std::uint64_t incarnation);
  bool done(int worker) const { return members_[std::size_t(worker)].done; }
  /// A worker has ended the training of all: the job counts as having reached its last step.
  void end_training() { ended_ = true; }

  /// Begins a step, at its first frame. Returns false when the contributions must not be applied:
  /// the step was begun or applied before, or a newer process has joined. If `reads_now` is false,
  /// the step reads the values that were present when this worker's previous step ended.
  bool begin_step(int worker, std::uint64_t incarnation, std::int64_t step, bool reads_now = false);
  /// Ends a step, at its last frame, and counts a global step if `counts` is true. Returns the
  /// count, and the staleness of a step that counts.
  StepDone end_step(int worker, std::uint64_t incarnation, bool counts);

  /// The worker's step is decided: a round counts it, or it was made in vain. The step may be that
  /// of a process that was replaced meanwhile.
  void decide_step(int worker, std::int64_t step);

  /// A round is closed: it is one global step. Returns the number of global steps.
  std::int64_t close_round() { return ++global_step_; }

  void set_global_step(std::int64_t step) { global_step_ = step; }
  /// Call it when training resumes: this many own steps of the worker are applied. Ignores a worker
  /// outside the cluster spec.
  void set_applied(int worker, std::int64_t steps);
  void set_last_step(std::int64_t step) { last_step_ = step; }
  std::int64_t global_step() const { return global_step_; }
  std::uint64_t epoch() const { return epoch_; }
  int connected() const;
  /// True when no worker is connected, and no worker that is cut off may come back.
  bool deserted() const;
  int workers() const { return int(members_.size()); }
  /// True when a newer process of the worker than `incarnation` has joined.
  bool is_displaced(int worker, std::uint64_t incarnation) const;
  /// True when the worker's process `incarnation` has said goodbye.
  bool has_left(int worker, std::uint64_t incarnation) const;
  bool is_connected(int worker) const {
    return members_[std::size_t(worker)].presence == Presence::kConnected;
  }
  bool reached_last_step() const { return last_step_ > 0 && global_step_ >= last_step_; }
  bool training_ended() const { return ended_; }
  std::int64_t applied(int worker) const { return members_[std::size_t(worker)].applied; }

  /// Returns what the workers are told. The job is warm when every worker that takes part has made
  /// its first steps; all are done when none of them trains any more. A worker that never joined
  /// takes part until join_timeout; a worker that died does not.
  JobState job_state(TimePoint now) const;

  enum class End : std::uint8_t { kNotYet, kFinished, kAbandoned };
  /// When a job ends. kFinished: the last step is reached and the job is deserted, or all workers
  /// have said goodbye. A worker that may still be starting is given late_start, since nothing else
  /// would tell it that the job is over. kAbandoned: no worker was connected for join_timeout.
  End end(TimePoint now) const;
  /// Returns the time at which to ask job_state and end again, unless something happens before.
  TimePoint next_change(TimePoint now) const;
  /// Returns "worker:0 died, worker:1 never came", for example, for the message of an abandoned ps.
  std::string text() const;

 private:
  enum class Presence : std::uint8_t { kAbsent, kConnected, kCutOff, kDead, kLeft };
  struct Member {
    Presence presence = Presence::kAbsent;
    std::uint64_t incarnation = 0;
    bool done = false;
    std::int64_t begun = -1;    // the last own step begun
    std::int64_t applied = 0;   // own steps of the task, over all incarnations
    std::int64_t made = 0;      // own steps of this incarnation
    std::int64_t read_at = -1;  // the global step whose values the worker's next contribution reads
  };
  /// True when the last step is reached, or a worker has ended the training of all. A job without a
  /// last step ends by time or by epochs: its end is reached as soon as one worker is done, and
  /// then nobody waits for lost workers.
  bool reached() const;
  /// The time at which the job ends if nobody comes back.
  TimePoint end_when_alone() const;
  int count(Presence presence) const;
  Member* find(int worker, std::uint64_t incarnation);
  void leave(int worker, std::uint64_t incarnation, Presence presence, TimePoint now);

  MembershipOptions options_;
  std::vector<Member> members_;
  TimePoint start_, alone_since_;
  std::uint64_t epoch_;
  std::int64_t global_step_ = 0, last_step_ = 0;
  bool ended_ = false;
};

}  // namespace paceline
