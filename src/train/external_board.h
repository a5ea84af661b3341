// The board on which the kernels of a step and the code that computes its model exchange values,
// gradients and the loss.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/real_clock.h"
#include "paceline/external_store.h"
#include "paceline/op.h"

namespace paceline {

/// An attribute of nodes that other code computes: the number of cores that this code keeps busy
/// (double, 0: not known). Code that waits for a GPU keeps hardly one core busy.
constexpr char kBusyCores[] = "busy_cores";
/// An attribute of such nodes: the seconds that the node takes (double, 0: not known).
constexpr char kSeconds[] = "seconds";

/// The seconds from the beginning of a step until the step needed each variable, had each gradient,
/// and ended; for some steps.
struct ExternalTimes {
  using OfSteps = std::vector<double>;
  std::vector<OfSteps> needed, handed_over;  // by variable
  OfSteps ended;
  /// The cores that the process kept busy from the first of these steps to the last; 0: not known.
  double busy_cores = 0;
};

/// The thread of the session shows values and takes gradients; any other threads wait for values
/// and hand gradients over. Nobody holds the lock while memory is copied or released.
class ExternalBoard {
 public:
  /// With `takes_at_end` the session takes no gradient before the step ends. This is for one
  /// process: nothing waits for gradients there, and a rule that is applied earlier takes cores
  /// from the code that computes the other gradients.
  explicit ExternalBoard(std::vector<ExternalVariable> variables,
                         std::function<void()> check_wait = {}, bool takes_at_end = false);

  const std::vector<ExternalVariable>& variables() const { return variables_; }
  /// Throws kNotFound.
  const ExternalVariable& variable(int index) const;

  // The thread of the session.
  /// Opens a step. `rows` says by variable how many rows of it the step reads (−1: the whole
  /// variable).
  void open(std::vector<std::int64_t> rows);
  /// True in a step that other code computes. False while a plan is only tried for its times.
  bool is_open() const;
  void show(int variable, const TensorView& value);
  /// Waits until the gradient of one of `count` variables was handed over, or the step ends;
  /// variable_at(i) is the i-th variable. Returns the position of the first such variable; 0 if the
  /// step ended without one of these gradients.
  std::size_t first_handed_over(std::size_t count,
                                const std::function<int(std::size_t)>& variable_at);
  /// Both wait until the gradient was handed over, and write or lend it. If the step ends without
  /// the gradient, they write zeros, or no rows. They throw if the step is abandoned.
  void take(int variable, const KernelCall& call);
  void take_rows(int variable, const KernelCall& call);
  /// Waits until the step ends, and returns its loss, or the loss before if this step has none.
  double take_loss();
  /// Notes that the step has ended, with `error` if it failed.
  void close(std::exception_ptr error = {});

  // Other threads.
  TensorView need(int variable);
  void hand_over(int variable, std::span<const std::int32_t> ids, const TensorView& gradient,
                 bool by_rows, std::shared_ptr<const void> owner);
  /// Ends the step, with its loss if it has one. Throws kFailedPrecondition unless a step is open.
  void end(std::optional<double> loss);
  /// From now on kernels that wait throw an error that says `why`.
  void abandon(const std::string& why);
  /// Waits until `done`, which is called under the lock, returns true. Calls check_wait meanwhile.
  void wait(const std::function<bool()>& done);
  /// Waits as wait() does, but never calls check_wait.
  void wait_quietly(const std::function<bool()>& done);
  /// Calls `by` under the lock, to change what the `done` of a wait tests.
  void change(const std::function<void()>& by);
  /// Returns the times of `kTimed` steps. The first `kUntimed` steps are left out, since they touch
  /// memory for the first time.
  ExternalTimes times() const;
  static constexpr int kUntimed = 2, kTimed = 8;
  /// Throws the earliest error of the session.
  void check() const;

 private:
  struct Shown {
    TensorView value = {};
    bool there = false, asked = false;
    std::int64_t rows = -1;  // the rows that this step reads; −1: all of the variable
  };
  struct Handed {
    bool there = false, taken = false;
    TensorView gradient;
    std::vector<std::int32_t> ids;
    std::shared_ptr<const void> owner;
  };
  using Lock = std::unique_lock<std::mutex>;

  void check_locked() const;
  void check_open(const char* call, int variable) const;
  void check_gradient(int variable, std::span<const std::int32_t> ids, const TensorView& gradient,
                      bool by_rows) const;
  bool is_there(int variable) const;
  bool wait_for_gradient(Lock& lock, int variable);
  void release(int variable);
  void note_time(ExternalTimes::OfSteps& of);
  void note_busy_cores();

  const std::vector<ExternalVariable> variables_;
  const std::function<void()> check_wait_;
  const bool takes_at_end_;
  const RealClock clock_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Shown> shown_;
  std::vector<Handed> handed_;
  std::atomic<bool> open_{false};  // changed under the lock
  bool ending_ = false;
  std::optional<std::string> abandoned_;
  double loss_ = 0;
  TimePoint opened_{};
  struct Moment {
    TimePoint at{};
    double cpu_seconds = 0;  // of the process
  };
  Moment timed_from_;
  int steps_ = 0;
  ExternalTimes times_;
  std::exception_ptr error_;
  // Only the thread of the session uses these. They are kept for their memory.
  std::vector<std::int32_t> ids_;
  std::vector<float> rows_;
};

}  // namespace paceline
