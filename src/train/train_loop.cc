#include "train/train_loop.h"

#include <numeric>
#include <utility>

#include "paceline/error.h"
#include "train/step_feed.h"

namespace paceline {

TrainLoop::TrainLoop(const Parts& parts)
    : parts_(parts),
      position_(parts.position),
      fed_position_(parts.position),
      fill_next_([this] {
        inputs_ = fill(last_.step + 1);
        // This executor cannot ask for the rows of a step of other sizes, which has another
        // executor.
        return inputs_ == Inputs::kFilled && &towers()[0]->executor() == executors_[0];
      }),
      fill_ahead_([this] { fill_ahead(); }) {
  for (const Trained& each : parts.trainings) {
    const bool open = each.towers[0]->open(), ahead = parts.towers != nullptr;
    // With statistics of the whole batch no tower may lack a batch: the batch that it computes
    // instead would count twice.
    const bool some_may_lack = open && ahead && !parts.towers->syncs_batch_norm();
    batches_.push_back(open || ahead
                           ? std::make_unique<TowerBatches>(each.towers.size(), open, some_may_lack)
                           : nullptr);
    executors_.resize(each.towers.size());
    examples_.resize(each.towers.size());
  }
  last_.step = parts_.first_step;
  last_.global_step = parts_.store.global_step();
  if (parts_.timeline == nullptr) return;
  parts_.timeline->name_thread("step");
  step_label_ = parts_.timeline->label({"step", "step", {}});
  input_label_ = parts_.timeline->label({"input", "step", {}});
  reply_label_ = parts_.timeline->label({"wait for the global step", "step", {}});
  towers_label_ = parts_.timeline->label({"wait for the towers", "step", {}});
  tower_label_ = parts_.timeline->label({"tower", "step", {}});
}

TrainLoop::Inputs TrainLoop::fill(std::int64_t step) {
  const TimelineScope event(parts_.timeline, input_label_);
  const AccountScope input(parts_.account, Activity::kInput);
  if (open()) return fill_batches(step) ? Inputs::kFilled : Inputs::kOver;
  for (std::size_t tower = 0; tower < towers().size(); ++tower) {
    if (!fill_one(step, tower)) return Inputs::kOver;
  }
  return Inputs::kFilled;
}

// Fills the batches of a step. With towers, each tower takes its batch when the step begins.
bool TrainLoop::fill_batches(std::int64_t step) {
  if (!batches().fill(*feed_, batch_of(step, 0), fed_position_, parts_.normals, parts_.records)) {
    return false;
  }
  if (parts_.towers != nullptr) return true;
  batches().turn();
  batches().give(0, *towers()[0]);
  return true;
}

bool TrainLoop::fill_one(std::int64_t step, std::size_t tower) {
  StepFeed feed(towers()[tower]->executor(), parts_.normals, batch_of(step, tower), &fed_position_,
                parts_.records);
  (*feed_)(feed);
  if (tower > 0) feed.take_kept(towers()[0]->executor());
  feed.check_fed();
  return !feed.stopped();
}

bool TrainLoop::step(const std::function<void(Feed&)>& feed, std::size_t training,
                     bool look_ahead) {
  if (parts_.timeline != nullptr) parts_.timeline->begin_step(made_++);
  const TimelineScope event(parts_.timeline, step_label_);
  begun_ = parts_.account.clock().now();
  excluded_ = parts_.meter.excluded();
  feed_ = &feed;
  training_ = training;
  if (fill_error_ != nullptr) std::rethrow_exception(std::exchange(fill_error_, nullptr));
  if (inputs_ == Inputs::kUnknown) {
    inputs_ = fill(last_.step);
    is_ahead_ = open() && parts_.towers != nullptr;
  }
  const bool over = std::exchange(inputs_, Inputs::kUnknown) == Inputs::kOver;
  // While the step runs, fed_position_ may move on to the inputs of the next one.
  (over ? position_ : step_position_) = fed_position_;
  if (over) return false;
  if (parts_.records) tell_records();
  for (std::size_t i = 0; i < towers().size(); ++i) executors_[i] = &towers()[i]->executor();

  LearningRates& rates = parts_.trainings[training].rates;
  StepRequest request;
  request.learning_rates = rates.at(last_.global_step);
  request.identity = {parts_.seed, parts_.task, last_.step};
  if (look_ahead && executor().wants_next_inputs()) request.fill_next = &fill_next_;
  looks_ahead_ = look_ahead;
  const std::int64_t skipped = parts_.store.skipped();
  StepHandle& handle = run_towers(request);
  {
    const TimelineScope reply(parts_.timeline, reply_label_);
    AccountScope pull(parts_.account, Activity::kPull);
    last_.global_step = handle.global_step();
  }
  position_ = step_position_;
  last_.training = int(training);
  last_.skipped = parts_.store.skipped() > skipped;
  last_.loss = mean_loss();
  last_.learning_rate = rates.first();
  last_.global_norm.reset();
  if (executor().clips()) last_.global_norm = global_norm();
  ++last_.step;
  examples_made_ += examples();
  note_losses();
  last_made_at_ = parts_.account.clock().now();
  last_.seconds = double((last_made_at_ - begun_).count()) * 1e-9;
  return true;
}

// Times the kernels of one step in kTimedEvery, but not of the first step, which touches memory for
// the first time.
StepHandle& TrainLoop::run(const StepRequest& request) {
  if (parts_.details != nullptr && parts_.details->asked()) {
    executor().observe_next_step(*parts_.details);
  }
  const std::int64_t made = steps_made();
  if (parts_.kernels == nullptr || made == 0 || made % kTimedEvery != 0) {
    return executor().run(request);
  }
  parts_.kernels->begin_step();
  StepHandle& handle = executor().run(request);
  parts_.kernels->end_step();
  return handle;
}

StepHandle& TrainLoop::run_towers(const StepRequest& request) {
  if (parts_.towers == nullptr) {
    StepRequest own = request;
    own.examples = examples_[0] = towers()[0]->examples();
    return run(own);
  }
  StepHandle* handle = nullptr;
  auto step = [&](std::int64_t tower) { run_tower(std::size_t(tower), request, handle); };
  filling_ = looks_ahead_;
  batches().turn();
  const TimelineScope event(parts_.timeline, towers_label_);
  parts_.towers->run(TileFunction(step), looks_ahead_ ? fill_ahead_ : fill_nothing_);
  is_ahead_ = looks_ahead_;
  parts_.account.change_to(Activity::kOther);
  return *handle;
}

// Tower 0's thread counts the time of the step. The time for which filling goes on after the step
// counts as input.
void TrainLoop::run_tower(std::size_t tower, const StepRequest& request, StepHandle*& handle) {
  const TimelineScope event(parts_.timeline, tower_label_);
  if (is_ahead_) executors_[tower] = &batches().give(tower, *towers()[tower]);
  StepRequest own = request;
  own.identity.step = batch_of(request.identity.step, tower);
  own.examples = examples_[tower] =
      !is_ahead_ || batches().has(tower) ? towers()[tower]->examples() : 0;
  if (tower > 0) {
    executor(tower).run(own);
    return;
  }
  handle = &run(own);
  if (filling_) parts_.account.change_to(Activity::kInput);
}

void TrainLoop::fill_ahead() {
  const TimelineScope event(parts_.timeline, input_label_);
  try {
    const bool filled = batches().fill(*feed_, batch_of(last_.step + 1, 0), fed_position_,
                                       parts_.normals, parts_.records);
    inputs_ = filled ? Inputs::kFilled : Inputs::kOver;
  } catch (...) {
    fill_error_ = std::current_exception();
  }
  filling_ = false;
}

// Tells the store which records the step's contribution was made from.
void TrainLoop::tell_records() {
  if (!parts_.records->in_use()) {
    throw Error(
        ErrorCode::kUsage,
        "--shard dynamic shares out the records of an input pipeline "
        "(Pipeline::share_out) or of a sampler (trainer.sampler of paceline.torch), and this "
        "program has none that asks for them: leave --shard out");
  }
  const auto taken = step_position_.numbers.find(kTakenRecords);
  if (taken != step_position_.numbers.end()) parts_.records->set_reads(taken->second);
}

std::int64_t TrainLoop::examples() const {
  return std::accumulate(examples_.begin(), examples_.end(), std::int64_t{0});
}

void TrainLoop::begin_run() {
  for (const auto& batches : batches_) {
    if (batches) batches->begin_run();
  }
}

// Each example has the same weight. Losses and gradients of equal batches are added without
// weights, which would round them.
double TrainLoop::weight(std::size_t tower) const {
  const std::int64_t all = examples(), own = examples_[tower] * std::int64_t(towers().size());
  return all == 0 || own == all ? 1 : double(own) / double(all);
}

double TrainLoop::mean_loss() const {
  double sum = 0;
  for (std::size_t i = 0; i < towers().size(); ++i) sum += weight(i) * executor(i).loss();
  return sum / double(towers().size());
}

// If the session's store computes the norm, only the norm of the first tower's own contributions is
// known.
double TrainLoop::global_norm() const {
  if (parts_.towers == nullptr) return executor().global_norm();
  return parts_.towers->store().norm(training_).value_or(executor().global_norm());
}

void TrainLoop::note_losses() {
  if (training_ != 0) return;
  if (!std::exchange(first_made_, true)) first_loss_ = last_.loss;
  last_loss_ = last_.loss;
  losses_.add(last_.loss);
}

void TrainLoop::end_step() {
  const Duration before = transferred_;
  transferred_ = parts_.store.account().transfer;
  const Duration evaluated = parts_.meter.excluded() - excluded_;
  parts_.meter.add_step(parts_.account.clock().now() - begun_ - evaluated, transferred_ - before,
                        examples());
}

}  // namespace paceline
