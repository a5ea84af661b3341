// The inner loop of training: feed, step, account.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "exec/executor.h"
#include "kernels/metered_device.h"
#include "paceline/session.h"
#include "params/shared_record_blocks.h"
#include "run/report/loss_window.h"
#include "trace/timeline.h"
#include "train/input_normals.h"
#include "train/learning_rates.h"
#include "train/session_towers.h"
#include "train/step_details.h"
#include "train/step_meter.h"
#include "train/tower_batches.h"

namespace paceline {

/// All parts must outlive the loop. Only one thread may call it. A step of fixed sizes
/// allocates nothing.
class TrainLoop {
 public:
  struct Trained {
    std::vector<TrainPlans*> towers;  // a single one without towers
    LearningRates& rates;
  };
  struct Parts {
    std::vector<Trained> trainings;
    ParameterStore& store;
    StepAccount& account;
    StepMeter& meter;
    std::shared_ptr<const InputNormals> normals;
    std::uint64_t seed = 0;
    std::int64_t task = 0;
    std::int64_t first_step = 0;  // the number of the task's next step
    // The position in the task's data at which the loop begins.
    TaskPosition position = {};
    Timeline* timeline = nullptr;  // gets the steps, and their inputs
    /// Times the kernels of one step in kTimedEvery, but not of the first step; with towers, the
    /// kernels of tower 0. Null: nobody times kernels.
    KernelMeter* kernels = nullptr;
    /// Sees the steps that are asked for; with towers, tower 0's part of them. Null: nobody looks.
    StepDetails* details = nullptr;
    SessionTowers* towers = nullptr;  // runs the steps of several towers; null: there is one device
    /// The records that the job shares out among its workers; null: it shares out none.
    std::shared_ptr<SharedRecordBlocks> records = nullptr;
  };
  static constexpr std::int64_t kTimedEvery = 16;
  explicit TrainLoop(const Parts& parts);
  TrainLoop(const TrainLoop&) = delete;
  TrainLoop& operator=(const TrainLoop&) = delete;

  /// Makes one step of a training. The feed's time counts as input, the step's time as the executor
  /// says, and the wait for the step's global number as pull. Returns false when the feed stopped:
  /// then no step was made, and batches that other towers were given are dropped.
  /// The feed is called for the next step before this one ends if the executor wants the next
  /// inputs or there are towers, and if the step may `look_ahead`, which means that the next step
  /// is of the same training. The next call of step() then begins with these inputs, or throws what
  /// the feed has thrown.
  bool step(const std::function<void(Feed&)>& feed, std::size_t training = 0,
            bool look_ahead = true);
  /// Begins a run, before its first step.
  void begin_run();
  /// Returns the weight of a tower in the last step: the examples of its batch, divided by the mean
  /// number over the towers; 1 if all batches have equally many.
  double weight(std::size_t tower) const;
  /// Ends the step's time. To be called after hooks have seen the step, so that their time counts
  /// as other.
  void end_step();

  const StepResult& last() const { return last_; }
  /// Returns the position in the data after the last step, as feeds have told it.
  const TaskPosition& position() const { return position_; }
  /// Return the loss of the first training in the first step, and in the last one, that this loop
  /// made of that training.
  double first_loss() const { return first_loss_; }
  double last_loss() const { return last_loss_; }
  /// Returns the losses of the first training's first and last steps.
  const LossWindows& losses() const { return losses_; }
  /// Returns the time at which the last step was made, before hooks saw it.
  TimePoint last_made_at() const { return last_made_at_; }
  /// Returns the executor of a tower that has made the last step.
  Executor& executor(std::size_t tower = 0) const { return *executors_[tower]; }
  /// Returns the number of steps that this loop has made.
  std::int64_t steps_made() const { return last_.step - parts_.first_step; }
  /// Returns the number of examples in these steps.
  std::int64_t examples_made() const { return examples_made_; }

 private:
  enum class Inputs : std::uint8_t { kUnknown, kFilled, kOver };
  Inputs fill(std::int64_t step);
  const std::vector<TrainPlans*>& towers() const { return parts_.trainings[training_].towers; }
  bool open() const { return towers()[0]->open(); }
  TowerBatches& batches() { return *batches_[training_]; }
  bool fill_batches(std::int64_t step);
  std::int64_t batch_of(std::int64_t step, std::size_t tower) const {
    return step * std::int64_t(towers().size()) + std::int64_t(tower);
  }
  bool fill_one(std::int64_t step, std::size_t tower);
  StepHandle& run(const StepRequest& request);
  StepHandle& run_towers(const StepRequest& request);
  void run_tower(std::size_t tower, const StepRequest& request, StepHandle*& handle);
  void fill_ahead();
  std::int64_t examples() const;
  double mean_loss() const;
  double global_norm() const;
  void note_losses();
  void tell_records();

  Parts parts_;
  const std::function<void(Feed&)>* feed_ = nullptr;  // during a step
  std::size_t training_ = 0;                          // of the step
  Inputs inputs_ = Inputs::kUnknown;                  // of the next step
  TaskPosition position_;                             // of the last step made
  /// The positions in the data after this step's inputs, and after the inputs that were filled
  /// last.
  TaskPosition step_position_, fed_position_;
  const std::function<bool()> fill_next_;
  const std::function<void()> fill_ahead_, fill_nothing_ = {};
  /// By training; null if a feed fills the executor's inputs directly.
  std::vector<std::unique_ptr<TowerBatches>> batches_;
  std::vector<Executor*> executors_;    // of this step, by tower
  std::vector<std::int64_t> examples_;  // of this step, by tower
  // True: the batches of a step are in batches_, and each tower copies its own when the step
  // begins.
  bool is_ahead_ = false;
  // True: the next step's inputs may be filled within this step.
  bool looks_ahead_ = false;
  std::atomic<bool> filling_{false};  // true while the batches of the next step are filled
  std::exception_ptr fill_error_;     // thrown in the step whose batch it was
  StepResult last_;
  std::int64_t made_ = 0;  // the steps that this loop has begun
  std::int64_t examples_made_ = 0;
  const TimelineLabel *step_label_ = nullptr, *input_label_ = nullptr, *reply_label_ = nullptr,
                      *towers_label_ = nullptr, *tower_label_ = nullptr;
  double first_loss_ = 0, last_loss_ = 0;
  LossWindows losses_;
  bool first_made_ = false;  // a step of the first training
  TimePoint begun_{}, last_made_at_{};
  Duration excluded_{0};  // by the meter, when the step began
  Duration transferred_{0};
};

}  // namespace paceline
