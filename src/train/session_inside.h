// The access to a session that this library's own hooks, stores and models have.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "paceline/session.h"

namespace paceline {

/// The part of a session that programs need not know: SessionInside(session).begin_save().
class SessionInside {
 public:
  /// The session must outlive this object.
  explicit SessionInside(Session& session) : session_(session), impl_(*session.impl_) {}

  /// Ends the session as its destructor does, but keeps its memory: what lies there can be read
  /// until the session is destroyed. Nothing else can be called after it.
  void close();
  /// Returns the options with the actual examples_per_step: the examples of all towers' batches
  /// together.
  const SessionOptions& options() const;
  /// Returns the graph that is trained (the first of several), or the one that the session was made
  /// with.
  const Graph& graph() const;
  /// Returns the examples of the train steps that this session has made.
  std::int64_t examples() const;
  /// Returns the seconds of all train steps so far by activity ("share" of docs/report.md), without
  /// evaluations.
  std::vector<std::pair<std::string, double>> seconds_spent() const;
  /// Returns the staleness of this worker's contributions so far. Nothing is counted in one
  /// process.
  Staleness staleness() const;
  /// Reads all variables from the store and calls `see` with the name and the value of each. The
  /// time of this call counts as an evaluation's.
  void see_variables(const std::function<void(const std::string&, const Tensor&)>& see);
  /// Returns the records that the job shares out among its workers; null if it shares out none.
  std::shared_ptr<RecordBlocks> record_blocks() const;
  /// Moves the value of a variable to memory of its type and shape, where each step then changes
  /// it. The memory must outlive the session. Returns false where the value stays with the job:
  /// only one process without accumulation keeps values in such memory. Call it between two steps.
  bool move_value(std::string_view name, const TensorView& to);
  /// Returns the position that was saved with the checkpoint from which this task resumes; empty
  /// when the task begins anew, or was restarted in a job that went on.
  const TaskPosition& restored() const;
  /// Begins to save the state between two steps, on another thread, in RunOptions::out. Returns
  /// false when nothing is begun: the last save is still under way, or this is not the chief, or
  /// RunOptions::out is empty. When the save fails a line says why, and training goes on.
  bool begin_save();
  /// Prints a line that the next one replaces on a terminal. Elsewhere it does the same as
  /// Session::print.
  void print_progress(const std::string& line);

 private:
  Session& session_;
  Session::Impl& impl_;
};

}  // namespace paceline
