// Evaluations that run beside training, on a thread of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "paceline/hooks.h"
#include "paceline/session.h"

namespace paceline {

class Device;

/// Evaluates graphs of a session while the session trains. An evaluator has a device, plans and
/// memory of its own. It computes with a copy of the variables, which take_values() makes at one
/// moment between two steps of this session. The copy takes as much memory as the model. With
/// parameter servers, variables are read one after the other, so other workers may change some of
/// them in between. A session may have several evaluators, each used by a thread of its own. The
/// session must outlive them.
class Evaluator {
 public:
  /// Call the constructor on the session's thread. The evaluator computes on a device of the
  /// session's kind (--device) with `threads` threads, which compete with training for the cores. 0
  /// threads: one for each core that the process may use. Throws kInvalidArgument when `threads` is
  /// below 0.
  explicit Evaluator(Session& session, int threads = 1);
  /// An evaluator that computes on a device which the caller has made.
  Evaluator(Session& session, std::unique_ptr<Device> device);
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  /// Copies the newest variables, or the moving averages of those that have one. Call the function
  /// on the session's thread, between two steps or in a hook. The time that it takes belongs to no
  /// step. Throws kFailedPrecondition while an evaluation is under way, and the error of a store
  /// that is lost.
  void take_values(EvaluateWith with = EvaluateWith::kVariables);
  /// Reads the variables of a checkpoint instead, as Session::begin_evaluation does.
  void take_values(const std::string& checkpoint, EvaluateWith with = EvaluateWith::kVariables);
  /// The global step at which the values were taken; 0 before the first take_values().
  std::int64_t global_step() const;

  /// Makes one step of a graph without updates, and returns copies of the fetched values, in their
  /// order. The graph's variables must be variables of the session. The evaluator has its own
  /// copies of the graph's local variables, which begin at zero and change with each step, also for
  /// a graph that is trained. Steps (Feed::step) are counted from 0. Any thread may call the
  /// function, one at a time. Throws kFailedPrecondition before take_values(), kNotFound for a
  /// variable that the session does not have, kCancelled after cancel(), and on the session's
  /// thread when the user has interrupted the job.
  std::vector<Tensor> evaluate(const Graph& graph, std::span<const Value> fetches,
                               const std::function<void(Feed&)>& feed, Mode mode = Mode::kInfer);
  /// Does the same as evaluate without copies: the views are valid until the next step of the same
  /// values.
  std::span<const TensorView> evaluate_in_place(const Graph& graph, std::span<const Value> fetches,
                                                const std::function<void(Feed&)>& feed,
                                                Mode mode = Mode::kInfer);
  /// Evaluates one value of a graph.
  Tensor evaluate(Value value, const std::function<void(Feed&)>& feed, Mode mode = Mode::kInfer);
  /// Sets the local variables of a graph back to zero.
  void reset_locals(const Graph& graph);
  /// Makes evaluations that begin from now on throw kCancelled. Any thread may call the function.
  void cancel();

 private:
  friend class EvaluateBeside;
  /// Makes the session relate numbers given to Session::summarise from now on to this evaluator's
  /// values.
  void report_now();

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Evaluates at an interval, beside training: copies the variables between two steps, then calls
/// `evaluate` on a thread of its own while the session goes on. Once `evaluate` has returned,
/// `done` is called on the session's thread, after the step under way. The end of the run waits for
/// both. An evaluation that is due while the last one still runs begins after it. An exception of
/// `evaluate` ends the run as an error of the session. The chief alone evaluates, unless `on` says
/// otherwise.
class EvaluateBeside : public Hook {
 public:
  /// The hook calls the function on a thread of its own. The function must not use the session.
  /// `done` may read what the function has written to the program's memory.
  using Function = std::function<void(Evaluator&)>;
  /// The hook calls the function on the session's thread. `at` is the result of this task's step
  /// after which the values were taken; they may have contributions of other workers since. If the
  /// function returns false, training ends.
  using Done = std::function<bool(Session& session, const StepResult& at)>;
  /// `every` as in EvaluateEvery; `threads` and `with` as in Evaluator.
  EvaluateBeside(Interval every, Function evaluate, Done done, int threads = 1,
                 EvaluateWith with = EvaluateWith::kVariables, EvaluateOn on = EvaluateOn::kChief);
  ~EvaluateBeside() override;
  EvaluateBeside(EvaluateBeside&&) noexcept;  ///< Session::add moves it.
  void begin(Session& session) override;
  bool after_step(Session& session, const StepResult& result) override;
  void end(Session& session) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline
