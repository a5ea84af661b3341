#include "bench/collective_rates.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/cores.h"
#include "bench/mpi_rates.h"
#include "bench/reduced_sizes.h"
#include "bench/reducing_group.h"
#include "bench/timing.h"
#include "params/collective/mpi_library.h"
#include "predict/memory_passes.h"

namespace paceline::bench {
namespace {

constexpr const ReducedSize& kLargest = kReducedSizes[4];
constexpr double kInMicros = 1e6, kInMillis = 1e3;

// Returns the mean time of as many reductions as take kLeastReducingSeconds.
double mean_time(ReducingGroup& group) {
  group.reduce();  // which may have to load the caches again
  double sum = 0;
  int times = 0;
  while (sum < kLeastReducingSeconds && times < kMostReductions) {
    sum += group.reduce();
    ++times;
  }
  return sum / times;
}

// The bound: each contribution is read once and one result written, at the rate of copies.
void measure_beside_bound(Recorder& recorder, int members) {
  const std::string name = reduction_name(kLargest, members, "shm");
  recorder.progress(name);
  const auto group = make_reducing_group({.members = members, .bytes = kLargest.bytes});
  MemoryPasses passes(std::min(members, usable_cores()));
  const double moved = double(members + 1) * double(kLargest.bytes);
  std::vector<double> times, bounds;
  for (int i = 0; i < recorder.repeats(); ++i) {
    times.push_back(kInMillis * mean_time(*group));
    group->pause();
    const double copy = time_calls(1, kLeastReducingSeconds, [&] { passes.copy(); }).front();
    group->resume();
    bounds.push_back(kInMillis * moved * copy / passes.copy_bytes());
  }
  recorder.add(figure_beside(name, "ms", times, "bound", bounds));
}

void measure_reduction(Recorder& recorder, const std::string& name,
                       const ReducingOptions& options) {
  recorder.progress(name);
  const auto group = make_reducing_group(options);
  std::vector<double> times;
  times.reserve(std::size_t(recorder.repeats()));
  for (int i = 0; i < recorder.repeats(); ++i) times.push_back(kInMicros * mean_time(*group));
  recorder.add(figure_of(name, "us", times));
}

}  // namespace

void measure_collectives(Recorder& recorder) {
  if (rank_by_mpirun()) return measure_as_mpi_rank(recorder);
  for (const int members : kReducingMembers) measure_beside_bound(recorder, members);
  for (const char* link : {"shm", "tcp"}) {
    for (const int members : kReducingMembers) {
      for (const ReducedSize& size : kReducedSizes) {
        measure_reduction(recorder, reduction_name(size, members, link),
                          {.link = link, .members = members, .bytes = size.bytes});
      }
    }
  }
  measure_mpi(recorder);
}

}  // namespace paceline::bench
