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

/// A thread of its own makes all calls of MPI after the start. It reduces the buckets in the order
/// in which a backward pass makes them, last needed first, since all ranks must make the same
/// calls. An attempt that all members have started is finished, also when it is to rest: whoever is
/// lost meanwhile ends the job.
class MpiCollectives : public Collectives {
 public:
  /// All that it is given by reference must outlive it. MPI was started. Throws kInvalidArgument
  /// unless worker and workers are its rank and size.
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
    std::vector<std::int32_t> ids;  // of the sum
    std::vector<float> row_sums;
  };
  /// The object is being destroyed.
  struct Stopped {};
  using Lock = std::unique_lock<std::mutex>;

  void run();
  void reduce(const ReductionGroup& group);
  void wait_contributed(std::size_t bucket);
  void sum_bucket(const ReductionGroup& group, void* communicator, std::size_t bucket);
  void sum_rows_of(const ReductionGroup& group, void* communicator, std::size_t bucket);
  void* communicator_of(const ReductionGroup& group);
  /// Sleeps between two looks when it takes longer than `patient`, in looks.
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
  std::vector<std::size_t> order_;  // of the buckets
  std::vector<Work> work_;
  std::optional<ReductionGroup> group_;                // an attempt that is to be reduced
  std::map<std::vector<std::int32_t>, void*> groups_;  // by members; of the own thread
  std::thread thread_;
};

}  // namespace paceline
