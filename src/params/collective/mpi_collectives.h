// Reduces with MPI: worker i is rank i.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/buffer.h"
#include "params/collective/collectives.h"
#include "params/collective/mpi_calls.h"

namespace paceline {

/// Reduces by calls of MPI, all from one thread after the start. All ranks must make the same
/// calls, so the thread reduces the buckets in the order in which a backward pass makes them: the
/// bucket that the next step needs last comes first. An attempt that all members have started runs
/// to its end, even if rest() is called. So a worker that is lost during an attempt ends the job.
class MpiCollectives : public Collectives {
 public:
  /// All references must outlive the object. MPI must be started. Throws kInvalidArgument unless
  /// `worker` and `workers` are this process's rank and the size.
  MpiCollectives(std::span<const VariableSpec> variables, const ContributionLayout& layout,
                 int worker, int workers, const MpiCalls& calls, ReductionListener& listener);
  ~MpiCollectives() override;

  std::span<std::byte> memory() override { return contributions_.span(); }
  void begin(std::shared_ptr<const std::vector<Bucket>> buckets) override;
  void open(std::uint64_t) override {}
  void start(const ReductionGroup& group) override;
  void contribute(std::size_t bucket, std::size_t rows) override;
  void rest() override;
  bool survives_losses() const override { return false; }
  void sum_of(std::size_t bucket, std::vector<SumPart>& parts) const override;
  RowSums row_sums_of(std::size_t bucket) const override;

 private:
  struct Work {
    bool contributed = false;
    std::size_t rows = 0;
    std::vector<std::int32_t> ids;  // ids of the sum
    std::vector<float> row_sums;
  };
  /// Ends the reduction thread when the object is being destroyed.
  struct Stopped {};
  using Lock = std::unique_lock<std::mutex>;

  void run();
  void reduce(const ReductionGroup& group);
  void wait_contributed(std::size_t bucket);
  void sum_bucket(const ReductionGroup& group, void* communicator, std::size_t bucket);
  void sum_rows_of(const ReductionGroup& group, void* communicator, std::size_t bucket);
  void* communicator_of(const ReductionGroup& group);
  /// Tests the request until it is done. After `patient` tests it sleeps between two tests.
  void finish(void* request, int patient, const char* what);

  const std::span<const VariableSpec> variables_;
  const ContributionLayout& layout_;
  const MpiCalls& calls_;
  ReductionListener& listener_;
  Buffer contributions_, sums_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> stopped_{false};
  bool resting_ = false, reducing_ = false;
  std::shared_ptr<const std::vector<Bucket>> buckets_;
  std::vector<std::size_t> order_;  // buckets in the order of reduction
  std::vector<Work> work_;
  std::optional<ReductionGroup> group_;                // an attempt to reduce
  std::map<std::vector<std::int32_t>, void*> groups_;  // by members; only for the own thread
  std::thread thread_;
};

}  // namespace paceline
