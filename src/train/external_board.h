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

/// An attribute of nodes that other code computes: the cores that it keeps busy meanwhile (double,
/// 0: not known). Code that waits for a GPU keeps hardly one busy.
constexpr char kBusyCores[] = "busy_cores";

/// When some steps needed each variable and had each gradient, in seconds since they began, and
/// when they ended.
struct ExternalTimes {
  using OfSteps = std::vector<double>;
  std::vector<OfSteps> needed, handed_over;  // by variable
  OfSteps ended;
  double busy_cores = 0;  // of the process from the first of the steps to the last; 0: not known
};

/// The thread of the session shows values and takes gradients; any others need values and hand
/// gradients over. Nobody holds the lock while memory is copied or released.
class ExternalBoard {
 public:
  /// `takes_at_end`: the session takes no gradient before the step ends. Nothing waits for them in
  /// one process, where rules that are applied meanwhile take the cores of the code that computes.
  explicit ExternalBoard(std::vector<ExternalVariable> variables,
                         std::function<void()> check_wait = {}, bool takes_at_end = false);

  const std::vector<ExternalVariable>& variables() const { return variables_; }
  /// Throws kNotFound.
  const ExternalVariable& variable(int index) const;

  // The thread of the session.
  /// Opens a step in which the variables are read by so many rows of each (−1: as wholes).
  void open(std::vector<std::int64_t> rows);
  /// False where a plan is tried, and nobody computes.
  bool is_open() const;
  void show(int variable, const TensorView& value);
  /// Waits until the gradient of one of `count` variables was handed over, or there will be none,
  /// and returns which one.
  std::size_t first_handed_over(std::size_t count,
                                const std::function<int(std::size_t)>& variable_at);
  /// Both wait until the gradient was handed over, and write or lend it; they return without one
  /// when the step ends first, and throw when it is abandoned.
  void take(int variable, const KernelCall& call);
  void take_rows(int variable, const KernelCall& call);
  /// Waits until the step ends, and returns its loss.
  double take_loss();
  /// The step has ended, with this error where it failed.
  void close(std::exception_ptr error = {});

  // Other threads.
  TensorView need(int variable);
  void hand_over(int variable, std::span<const std::int32_t> ids, const TensorView& gradient,
                 bool by_rows, std::shared_ptr<const void> owner);
  /// Throws kFailedPrecondition unless a step is open.
  void end(std::optional<double> loss);
  /// Kernels that wait throw it from now on.
  void abandon(const std::string& why);
  /// Waits, with check_wait, until `done` says so, which is asked under the lock.
  void wait(const std::function<bool()>& done);
  /// The same, without check_wait.
  void wait_quietly(const std::function<bool()>& done);
  /// Changes what `done` asks, under the lock.
  void change(const std::function<void()>& by);
  /// The times of `kTimed` steps after the first `kUntimed`, for which memory is touched first.
  ExternalTimes times() const;
  static constexpr int kUntimed = 2, kTimed = 8;
  /// Throws the earliest error of the session.
  void check() const;

 private:
  struct Shown {
    TensorView value = {};
    bool there = false, asked = false;
    std::int64_t rows = -1;  // of this step; −1: all of the variable
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
  // Of the thread of the session alone, kept for their memory.
  std::vector<std::int32_t> ids_;
  std::vector<float> rows_;
};

}  // namespace paceline
