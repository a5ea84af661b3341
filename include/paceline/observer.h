// Observers watch a session from outside. Examples are a live page, a prediction of the speed, a
// dry run, and a program that sends the numbers of a session elsewhere.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "paceline/session.h"

namespace paceline {

class Plan;
struct Report;
struct VariableSpec;

/// The parts of a session before it starts anything. The session's caller owns them.
struct PlannedSession {
  std::span<const Training> trainings;   // empty: the session trains nothing
  std::span<const Graph* const> graphs;  // each graph once; graphs that are trained come first
  const Cluster& cluster;                // the job's tasks
  const RunOptions& run;                 // the options of the run
  const SessionOptions& options;         // the options of the session
};

/// The report that another task has sent about itself.
struct TaskWords {
  std::string task;  // "worker:0", "ps:1"
  /// A JSON object whose "report" is the task's report so far (docs/report.md).
  std::string progress;
};

/// A session that was started, as its observers see it. Call its functions only on the session's
/// thread, unless a function's comment allows any thread. The RunningSession outlives the
/// observers.
class RunningSession {
 public:
  virtual ~RunningSession() = default;
  /// The parts of the session; SessionOptions::examples_per_step is known from
  /// SessionObserver::begins on.
  virtual PlannedSession made_of() const = 0;
  /// The last step of this task; zeros before its first.
  virtual const StepResult& last_step() const = 0;
  /// Prints a line for the user, unless RunOptions::quiet is set. Any thread may call the function.
  virtual void print(const std::string& line) = 0;
  /// Adds to the report, as Session::report does.
  virtual void add_to_report(const std::string& section, const std::string& key,
                             std::optional<double> value) = 0;
  /// The report of this task as JSON (docs/report.md), as if the run ended now.
  virtual std::string report_text() const = 0;
  /// Asks all other tasks for their progress. hear() returns their answers later. Any thread may
  /// call the function, between SessionObserver::joined and SessionObserver::leaving.
  virtual void ask_others() = 0;
  /// Returns what other tasks have answered since this observer's last call, and the latest
  /// progress of this task. Any thread may call the function, one at a time.
  virtual std::vector<TaskWords> hear() = 0;

  /// The report of this task. This function and the next ones are for observers within Paceline.
  virtual Report& report() = 0;
  /// The plan of a step of training number `training`, from 0. The plan is known from
  /// SessionObserver::begins on.
  virtual const Plan& plan(int training) const = 0;
  /// The shared variables, from SessionObserver::joined on.
  virtual std::span<const VariableSpec> variables() const = 0;
  /// The number of threads that compute.
  virtual int threads() const = 0;
};

/// An observer sees one session from its plan to its end. The session owns the observer, and calls
/// it on the session's thread. An exception that an observer throws ends the session as an error of
/// the program.
class SessionObserver {
 public:
  virtual ~SessionObserver() = default;
  /// The session is planned, but nothing is started: no device is made, no task is connected. If an
  /// observer returns false, the session does not start: the observers after it are not asked, and
  /// the session has ended before its first step (Session::started).
  virtual bool planned(const PlannedSession&) { return true; }
  /// The session is about to join its job, and may then wait for the other tasks.
  virtual void joining(RunningSession&) {}
  /// The session has joined its job. The variables have no values yet, so no worker trains.
  virtual void joined(RunningSession&) {}
  /// The plans are made and the sizes are known. The first step follows.
  virtual void begins(RunningSession&) {}
  /// The session asks this once, after all observers have been told `joined`. If any observer
  /// returns true, the session calls `progressed` of all observers.
  virtual bool wants_progress() const { return false; }
  /// The session calls this function between two steps, about once a second, and when a run begins
  /// or ends.
  virtual void progressed(RunningSession&) {}
  /// The user has interrupted the job, and the session is about to leave it.
  virtual void leaving(RunningSession&) {}
  /// The session ends without an error. The numbers of its report are measured; an observer can add
  /// more.
  virtual void ended(RunningSession&) {}
  /// The last lines of the session are printed; an observer may print some of its own.
  virtual void summed_up(RunningSession&) {}
};

}  // namespace paceline
