// Reduces over links between the members, in one of two ways. The members form a chunked ring. Or,
// if all of them share memory, they reduce in place: each worker sums its part of all contributions
// where the contributions lie, and all read the sums from that worker's memory. Rows of sparse
// variables are gathered, and each worker sums them.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "net/frame.h"
#include "net/memory/shared_memory.h"
#include "params/collective/collectives.h"

namespace paceline {

/// Sends frames to other workers, which are named by their indices.
class PeerSender {
 public:
  virtual ~PeerSender() = default;
  /// Sends as Connection::send does. If the worker is not connected, sends nothing, and calls
  /// `sent`.
  virtual void send(int worker, const FrameHeader& header, std::span<const std::byte> payload,
                    void (*sent)(void* context), void* context) = 0;
  /// Sends as Connection::send_copy does.
  virtual void send_copy(int worker, const FrameHeader& header,
                         std::span<const std::byte> payload) = 0;
};

/// Reduces the buckets in a thread of its own while the step goes on, in the order in which the
/// next step needs them. Threads of the link add up the chunks of a ring as they arrive.
class LinkCollectives : public Collectives {
 public:
  /// The numbers of the memories that a worker shares with the others.
  static constexpr std::uint32_t kContributions = 0, kSums = 1;
  /// Flags; each belongs to one message type. kFinal of kPartialSum: the sum has all contributions.
  /// kLastRows of kContributedRows: no more rows follow. kSummed of kInPlace: the sender has summed
  /// this part, and not only contributed.
  static constexpr std::uint16_t kFinal = 1, kLastRows = 1, kSummed = 1;

  /// Everything that is passed by reference or as a span must outlive the object.
  LinkCollectives(std::span<const VariableSpec> variables, const ContributionLayout& layout,
                  int worker, int workers, PeerSender& sender, ReductionListener& listener);
  ~LinkCollectives() override;

  std::span<std::byte> memory() override { return contributions_->bytes(); }
  void begin(std::shared_ptr<const std::vector<Bucket>> buckets) override;
  void open(std::uint64_t tag) override;
  void start(const ReductionGroup& group) override;
  void contribute(std::size_t bucket, std::size_t rows) override;
  void rest() override;
  void sum_of(std::size_t bucket, std::vector<SumPart>& parts) const override;
  RowSums row_sums_of(std::size_t bucket) const override;

  const std::shared_ptr<SharedMemory>& contributions() const { return contributions_; }
  const std::shared_ptr<SharedMemory>& sums() const { return sums_; }
  /// Takes the memory that another worker shares. Throws kDataLoss for an unknown number, and when
  /// the memory is too small.
  void take_memory(int worker, std::uint32_t id, std::shared_ptr<const SharedMemory> memory);
  /// Takes a frame of another worker. Ignores a frame of another attempt. Throws kDataLoss for a
  /// frame that does not fit the bucket that it names.
  void arrived(int worker, const FrameHeader& header, std::span<const std::byte> payload);

 private:
  /// Consecutive numbers of a bucket, as a ring sends them.
  struct Chunk {
    std::size_t first = 0, count = 0;
  };
  struct GatheredRows {
    std::vector<std::int32_t> ids;
    std::vector<float> rows;
    bool whole = false;
  };
  struct Work {
    bool contributed = false;
    std::size_t rows = 0;
    // The state of this attempt.
    bool begun = false;    // the others know that this worker has contributed
    bool reduced = false;  // this worker has summed its part, or all rows
    bool whole = false;
    /// By worker: whether its contribution is here, so that it can be summed. In place, also
    /// whether the worker has summed its part.
    std::vector<bool> there, summed;
    std::size_t summed_numbers = 0;      // in a ring: numbers that have all contributions
    std::vector<Chunk> early;            // chunks that arrived before this worker has contributed
    std::vector<GatheredRows> gathered;  // by worker
    std::vector<std::int32_t> ids;       // ids of the sum
    std::vector<float> row_sums;
  };
  struct Shared {
    std::array<std::shared_ptr<const SharedMemory>, 2> memories;
  };
  using Lock = std::unique_lock<std::mutex>;

  void run();
  bool work_on_one(Lock& lock);
  void fail(Lock& lock, const Error& error);
  bool work_on(std::size_t bucket, Lock& lock);
  /// Calls the function without the lock. Meanwhile the attempt may be given up, but no other
  /// attempt begins.
  template <typename F>
  void unlocked(Lock& lock, F&& function) {
    struct Relock {
      LinkCollectives& self;
      Lock& lock;
      ~Relock() {
        lock.lock();
        if (--self.working_ == 0 && self.resting_) self.changed_.notify_all();
      }
    };
    ++working_;
    lock.unlock();
    const Relock relock{*this, lock};
    function();
  }
  void notify_rested(Lock& lock);
  void note_whole(std::size_t bucket, Lock& lock);
  int size() const { return int(group_->members.size()); }
  int member_at(int rank) const { return group_->members[std::size_t(rank)]; }
  bool all_members(const std::vector<bool>& workers) const;
  std::size_t row_elements(std::size_t bucket) const;

  // In place.
  void announce(std::size_t bucket, std::uint16_t flags, Lock& lock);
  void sum_part(std::size_t bucket, Lock& lock);
  const float* numbers_of(int worker, std::uint32_t memory, std::size_t bucket) const;
  void take_in_place(int worker, const FrameHeader& header, Lock& lock);
  // The ring.
  Chunk segment(std::size_t bucket, int number) const;
  void scatter(std::size_t bucket, Lock& lock);
  void send_chunks(std::size_t bucket, Chunk chunk, std::uint16_t flags, Lock& lock);
  static void sent(void* self);
  void take_partial(int worker, const FrameHeader& header, std::span<const std::byte> payload,
                    Lock& lock);
  void add_and_pass_on(std::size_t bucket, Chunk chunk, const float* sum, Lock& lock);
  void take_final(std::size_t bucket, Chunk chunk, const float* sum, Lock& lock);
  void note_summed(std::size_t bucket, std::size_t count, Lock& lock);
  int segment_of(std::size_t bucket, Chunk chunk) const;
  // Rows.
  void send_rows(std::size_t bucket, Lock& lock);
  void take_rows(int worker, const FrameHeader& header, std::span<const std::byte> payload,
                 Lock& lock);
  void sum_gathered(std::size_t bucket, Lock& lock);
  void read_ids(int worker, std::size_t bucket, std::size_t count);
  void check_rows(std::size_t bucket, std::span<const std::int32_t> ids) const;

  const std::span<const VariableSpec> variables_;
  const ContributionLayout& layout_;
  const int worker_;
  PeerSender& sender_;
  ReductionListener& listener_;
  const std::shared_ptr<SharedMemory> contributions_, sums_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  std::vector<Shared> shared_;  // by worker
  /// By worker: the memory that the worker shared before this attempt began.
  std::vector<Shared> mapped_;
  std::shared_ptr<const std::vector<Bucket>> bucket_list_;
  std::span<const Bucket> buckets_;
  std::vector<std::size_t> order_;  // buckets by priority
  std::vector<Work> work_;
  std::uint64_t tag_ = 0;  // 0: no attempt is open
  std::optional<ReductionGroup> group_;
  std::size_t left_ = 0;  // buckets that are not whole
  bool resting_ = false;
  int working_ = 0;               // threads that read or write sums and contributions
  std::int64_t in_flight_ = 0;    // frames that borrow sums
  std::vector<std::byte> frame_;  // of rows to send
  std::thread thread_;
};

}  // namespace paceline
