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

// Batches are taken one by one, so that the next block is asked for with the last batch of this
// one.
class SharedBatches::Impl {
 public:
  Impl(std::int64_t batches, std::int64_t block, std::optional<std::int64_t> epochs)
      : batches_(batches),
        wish_{.records = block, .blocks = 1, .limit = epochs ? *epochs * batches : kForEver} {}
  ~Impl() { end(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::optional<SharedBatch> next(const std::shared_ptr<RecordBlocks>& blocks) {
    if (blocks != blocks_ || blocks_->revoked()) begin(blocks);
    if (next_ < 0 && !wait()) return {};
    return SharedBatch{.index = next_ % batches_,
                       .epoch = next_ / batches_,
                       .begins_block = next_ != last_ + 1 || next_ % batches_ == 0};
  }

  void use(TaskPosition& position) {
    last_ = std::exchange(next_, -1);
    position.numbers[kTakenRecords] = ++taken_;
  }

 private:
  void begin(std::shared_ptr<RecordBlocks> blocks) {
    end();
    blocks_ = std::move(blocks);
    next_ = -1;
    last_ = kNone;
    taken_ = blocks_->begin(wish_, [this] {
      const std::lock_guard lock(mutex_);
      changed_ = true;
      wake_.notify_all();
    });
  }

  void end() {
    if (blocks_) blocks_->end();
  }

  // Returns false when there will be no more. Batches that others have may never come, if the job
  // ends meanwhile.
  bool wait() {
    constexpr auto kLookEvery = std::chrono::milliseconds(250);
    while (true) {
      {
        const std::lock_guard lock(mutex_);
        changed_ = false;
      }
      if (const RecordRange taken = blocks_->take(1); taken.size() > 0) {
        next_ = taken.first;
        return true;
      }
      if (blocks_->over()) return false;
      std::unique_lock lock(mutex_);
      if (wake_.wait_for(lock, kLookEvery, [this] { return changed_; })) continue;
      lock.unlock();
      blocks_->check_wait();
      if (blocks_->revoked()) begin(blocks_);
    }
  }

  static constexpr std::int64_t kNone = -2;  // nothing follows it

  const std::int64_t batches_;
  const RecordBlocks::Wish wish_;
  std::shared_ptr<RecordBlocks> blocks_;
  std::int64_t next_ = -1, last_ = kNone;  // places of all epochs
  std::int64_t taken_ = 0;                 // read by steps
  std::mutex mutex_;
  std::condition_variable wake_;
  bool changed_ = false;
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
