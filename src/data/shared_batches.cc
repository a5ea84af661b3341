#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "paceline/data.h"
#include "paceline/error.h"

namespace paceline {
namespace {

constexpr std::int64_t kForEver = std::int64_t{1} << 62;

}  // namespace

class RecordTaker::Impl {
 public:
  explicit Impl(const RecordBlocks::Wish& wish) : wish_(wish) {}
  ~Impl() { end(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void follow(const std::shared_ptr<RecordBlocks>& blocks) {
    if (blocks != blocks_ || blocks_->revoked()) begin(blocks);
  }
  int begins() const { return begins_; }
  std::int64_t use(std::int64_t records) { return used_ += records; }

  // Looks at the job from time to time while it waits: if the job ends, records that other workers
  // hold may never come back.
  RecordRange take(std::int64_t most, const std::function<void()>& check) {
    constexpr auto kLookEvery = std::chrono::milliseconds(250);
    while (true) {
      {
        const std::lock_guard lock(mutex_);
        changed_ = false;
      }
      const RecordRange taken = blocks_->take(most);
      if (taken.size() > 0 || blocks_->over()) return taken;
      std::unique_lock lock(mutex_);
      if (wake_.wait_for(lock, kLookEvery, [this] { return changed_; })) continue;
      lock.unlock();
      blocks_->check_wait();
      if (check) check();
      follow(blocks_);
    }
  }

 private:
  void begin(std::shared_ptr<RecordBlocks> blocks) {
    end();
    blocks_ = std::move(blocks);
    ++begins_;
    used_ = blocks_->begin(wish_, [this] {
      const std::lock_guard lock(mutex_);
      changed_ = true;
      wake_.notify_all();
    });
  }
  void end() {
    if (blocks_) blocks_->end();
  }

  const RecordBlocks::Wish wish_;
  std::shared_ptr<RecordBlocks> blocks_;
  int begins_ = 0;
  std::int64_t used_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool changed_ = false;
};

RecordTaker::RecordTaker(const RecordBlocks::Wish& wish) : impl_(std::make_unique<Impl>(wish)) {}
RecordTaker::~RecordTaker() = default;

void RecordTaker::follow(const std::shared_ptr<RecordBlocks>& blocks) { impl_->follow(blocks); }
int RecordTaker::begins() const { return impl_->begins(); }
RecordRange RecordTaker::take(std::int64_t most, const std::function<void()>& check) {
  return impl_->take(most, check);
}
std::int64_t RecordTaker::use(std::int64_t records) { return impl_->use(records); }

// Takes batches one by one, so that it asks for the next block with the last batch of the present
// block.
class SharedBatches::Impl {
 public:
  Impl(std::int64_t batches, std::int64_t block, std::optional<std::int64_t> epochs)
      : batches_(batches),
        taker_({.records = block, .blocks = 1, .limit = epochs ? *epochs * batches : kForEver}) {}

  std::optional<SharedBatch> next(const std::shared_ptr<RecordBlocks>& blocks) {
    taker_.follow(blocks);
    if (has_begun_anew()) next_ = -1;
    if (next_ < 0) {
      const RecordRange taken = taker_.take(1);
      has_begun_anew();
      if (taken.size() == 0) return {};
      next_ = taken.first;
    }
    return SharedBatch{.index = next_ % batches_,
                       .epoch = next_ / batches_,
                       .begins_block = next_ != last_ + 1 || next_ % batches_ == 0};
  }

  void use(TaskPosition& position) {
    last_ = std::exchange(next_, -1);
    position.numbers[kTakenRecords] = taker_.use(1);
  }

 private:
  bool has_begun_anew() {
    if (taker_.begins() == std::exchange(begins_, taker_.begins())) return false;
    last_ = kNone;
    return true;
  }

  static constexpr std::int64_t kNone = -2;  // nothing follows it

  const std::int64_t batches_;
  RecordTaker taker_;
  int begins_ = 0;                         // taker_.begins() when it was last read
  std::int64_t next_ = -1, last_ = kNone;  // counted over all epochs
};

SharedBatches::SharedBatches(std::int64_t batches, std::int64_t block,
                             std::optional<std::int64_t> epochs) {
  if (batches < 1 || block < 1 || epochs.value_or(1) < 1) {
    throw Error(ErrorCode::kInvalidArgument,
                "[text] the numbers of batches, of a block and of epochs are from 1 on");
  }
  impl_ = std::make_unique<Impl>(batches, block, epochs);
}
SharedBatches::~SharedBatches() = default;

std::optional<SharedBatch> SharedBatches::next(const std::shared_ptr<RecordBlocks>& blocks) {
  return impl_->next(blocks);
}

void SharedBatches::use(TaskPosition& position) { impl_->use(position); }

}  // namespace paceline
