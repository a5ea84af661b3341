#include <fmt/format.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "paceline/error.h"
#include "paceline/input.h"
#include "train/batch_feed.h"

namespace paceline {

/// Fills batches on a thread of its own. After a batch that stopped or failed, the thread rests
/// until the next batch is asked for.
class Prefetcher {
 public:
  Prefetcher(std::function<void(Feed&)> feed, int batches)
      : feed_(std::move(feed)), filled_(std::size_t(batches)) {
    for (Filled& each : filled_) free_.push_back(&each);
  }
  ~Prefetcher() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// Waits for the next batch and gives it to `feed`.
  void give_next(Feed& feed);

 private:
  struct Filled {
    BatchFeed batch;
    std::exception_ptr error;
  };
  void start(Feed& feed);
  Filled& take();
  void put_back(Filled& filled);
  void work();
  Filled* next_to_fill();
  void fill(Filled& filled);
  void hand_over(Filled& filled, bool last);

  const std::function<void(Feed&)> feed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Filled> filled_;
  std::deque<Filled*> free_, ready_;
  bool resting_ = true, ended_ = false;
  // The next members belong to the thread while it works.
  std::int64_t step_ = 0;   // the own step of the next batch
  bool evaluates_ = false;  // the batches are for evaluations
  TaskPosition position_;   // after the last batch
  std::shared_ptr<const InputNormals> normals_;
  std::shared_ptr<RecordBlocks> blocks_;
  std::thread thread_;
};

void Prefetcher::start(Feed& feed) {
  {
    const std::lock_guard lock(mutex_);
    const bool begins = resting_ && ready_.empty();
    if (!begins && feed.evaluates() != evaluates_) {
      throw Error(
          ErrorCode::kFailedPrecondition,
          fmt::format("[prefetch] {} would take batches that were filled ahead for {}: give "
                      "it a feed of its own",
                      evaluates_ ? "training" : "an evaluation",
                      evaluates_ ? "evaluations" : "training"));
    }
    if (!begins) return;
    resting_ = false;
    evaluates_ = feed.evaluates();
    step_ = feed.step();
    position_ = feed.position();
    normals_ = feed.normals();
    blocks_ = feed.record_blocks();
  }
  changed_.notify_all();
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
}

Prefetcher::Filled& Prefetcher::take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !ready_.empty(); });
  Filled& filled = *ready_.front();
  ready_.pop_front();
  return filled;
}

void Prefetcher::put_back(Filled& filled) {
  {
    const std::lock_guard lock(mutex_);
    free_.push_back(&filled);
  }
  changed_.notify_all();
}

void Prefetcher::give_next(Feed& feed) {
  start(feed);
  Filled& filled = take();
  struct PutBack {
    Prefetcher& to;
    Filled& filled;
    ~PutBack() { to.put_back(filled); }
  };
  const PutBack put_back{*this, filled};
  if (filled.error) std::rethrow_exception(std::exchange(filled.error, nullptr));
  filled.batch.give(feed);
}

Prefetcher::Filled* Prefetcher::next_to_fill() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ended_ || (!resting_ && !free_.empty()); });
  if (ended_) return nullptr;
  Filled* const filled = free_.front();
  free_.pop_front();
  return filled;
}

void Prefetcher::fill(Filled& filled) {
  filled.batch.begin(step_++, evaluates_ ? nullptr : &position_, normals_, blocks_);
  try {
    feed_(filled.batch);
    position_ = filled.batch.position();
  } catch (...) {
    filled.error = std::current_exception();
  }
}

void Prefetcher::hand_over(Filled& filled, bool last) {
  {
    const std::lock_guard lock(mutex_);
    ready_.push_back(&filled);
    resting_ = last;
  }
  changed_.notify_all();
}

void Prefetcher::work() {
  while (Filled* const filled = next_to_fill()) {
    fill(*filled);
    hand_over(*filled, filled->error != nullptr || filled->batch.stopped());
  }
}

std::function<void(Feed&)> prefetch(std::function<void(Feed&)> feed, int batches) {
  if (batches < 1) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[prefetch] {} batches ahead: at least one is needed", batches));
  }
  return [prefetcher = std::make_shared<Prefetcher>(std::move(feed), batches)](Feed& to) {
    prefetcher->give_next(to);
  };
}

}  // namespace paceline
