// The part of the driver that depends on the engine that reduces, and the ends of a job.
#include <fmt/format.h>

#include "params/collective/collective_driver.h"
#include "params/collective/collectives_kind.h"
#include "params/collective/mpi_collectives.h"
#include "params/collective/mpi_library.h"

namespace paceline {
namespace {

// The worker whose contribution was bad finds it at the same time as the others.
constexpr Duration kBlameWithin = std::chrono::seconds(10);

}  // namespace

std::unique_ptr<Collectives> CollectiveDriver::make_collectives() {
  const int worker = options_.task.index, workers = int(options_.spec.workers.size());
  if (!collectives_kind(options_.collectives).over_links) {
    const MpiCalls& calls = mpi_calls();
    if (!calls.started()) {
      throw Error(ErrorCode::kFailedPrecondition,
                  fmt::format("--collectives mpi: mpirun has not started {}", options_.task.str()));
    }
    return std::make_unique<MpiCollectives>(variables_.specs(), layout_, worker, workers, calls,
                                            *this);
  }
  auto over_links =
      std::make_unique<LinkCollectives>(variables_.specs(), layout_, worker, workers, *this, *this);
  over_links_ = over_links.get();
  return over_links;
}

// All workers must reduce alike.
std::uint64_t CollectiveDriver::fingerprint_of_step(const std::vector<Bucket>& buckets) const {
  const std::uint64_t engine = over_links_ == nullptr ? 2 : 0;
  return paceline::fingerprint_of(buckets) ^ std::uint64_t(options_.sync_batch_norm) ^ engine;
}

// With the lock.
void CollectiveDriver::tell_end(const Error& why) {
  for (const CollectiveConnection* peer : current_) {
    if (peer != nullptr) send_message(*peer, {MessageType::kRefuse, std::string(why.what())});
  }
  fail(why);
}

void CollectiveDriver::end_job(const Error& why) {
  {
    const std::lock_guard lock(mutex_);
    tell_end(why);
  }
  throw why;
}

void CollectiveDriver::wait_job_end(const std::string& otherwise) {
  wakeup_.wait(*link_, Deadline::after(kBlameWithin), [&] { return shown_.failed.load(); });
  check();
  throw Error(ErrorCode::kFailedPrecondition, otherwise);
}

// The others hear which worker was lost before they miss this one.
void CollectiveDriver::lose_member(int worker, const Error& why) {
  if (collectives_->survives_losses() || leaving_ || shown_.failed) return;
  if (group_.standing_of(worker) == Standing::kRetired) return;
  tell_end(
      {ErrorCode::kUnavailable,
       fmt::format("{} is lost: {}; with --collectives {} the job ends with any of its workers",
                   text_of(worker), why.what(), options_.collectives)});
}

}  // namespace paceline
