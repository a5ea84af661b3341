#include "bench/mpi_rates.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/temporary_folder.h"
#include "bench/reduced_sizes.h"
#include "bench/reducer.h"
#include "paceline/error.h"
#include "params/collective/mpi_collectives.h"
#include "params/collective/mpi_library.h"

namespace paceline::bench {
namespace {

constexpr double kMicrosOfMpi = 1e6;

/// A rank that reduces numbers of one size. All ranks make the same calls.
class ReducingRank {
 public:
  ReducingRank(const MpiCalls& calls, std::size_t bytes)
      : calls_(calls),
        reducer_(calls.rank(), calls.size(), false, bytes),
        engine_(reducer_.variables(), reducer_.layout(), calls.rank(), calls.size(), calls,
                reducer_) {
    reducer_.set_wake([this] {
      { const std::lock_guard lock(mutex_); }
      changed_.notify_all();
    });
    reducer_.fill(engine_);
    reduce();
    reducer_.check_sums(engine_);
  }

  double mean_time() {
    double sum = 0;
    int times = 0;
    do {
      sum += reduce();
      ++times;
    } while (first_wants(sum < kLeastReducingSeconds && times < kMostReductions));
    return sum / times;
  }

 private:
  double reduce() {
    return reducer_.reduce(
        engine_, [this] { first_wants(true); },
        [this](const std::function<bool()>& whole) {
          std::unique_lock lock(mutex_);
          changed_.wait(lock, whole);
        });
  }

  // Waits for all ranks. Returns what the first one wants.
  bool first_wants(bool own) {
    const char mine = own ? 1 : 0;
    std::vector<char> all(std::size_t(calls_.size()));
    check_mpi(calls_.exchange(&mine, 1, all.data()), "meeting");
    return all.front() != 0;
  }

  const MpiCalls& calls_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Reducer reducer_;
  MpiCollectives engine_;
};

// Runs the words without their output. Returns false when they fail, or there is no such program.
bool run_silently(std::vector<std::string> words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_WRONLY, 0);
  }
  pid_t pid = -1;
  const int failure = posix_spawnp(&pid, pointers[0], &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = -1;
  if (failure == 0) ::waitpid(pid, &status, 0);
  return failure == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

Summary summary_of(const nlohmann::json& value) {
  return {.median = value["median"],
          .low = value["low"],
          .high = value["high"],
          .count = value["count"]};
}

}  // namespace

void measure_as_mpi_rank(Recorder& recorder) {
  const MpiCalls& calls = mpi_calls();
  check_mpi(calls.start(), "joining the other processes");
  for (const ReducedSize& size : kReducedSizes) {
    ReducingRank rank(calls, size.bytes);
    std::vector<double> times;
    times.reserve(std::size_t(recorder.repeats()));
    for (int i = 0; i < recorder.repeats(); ++i) times.push_back(kMicrosOfMpi * rank.mean_time());
    recorder.add(figure_of(reduction_name(size, calls.size(), "mpi"), "us", times));
  }
  check_mpi(calls.end(), "leaving the other processes");
}

void measure_mpi(Recorder& recorder) {
  if (!has_mpi_calls()) return recorder.note("mpi: this build has no plug-in for it");
  const TemporaryFolder folder;
  for (const int members : kReducingMembers) {
    recorder.progress(fmt::format("mpi between {}", members));
    const std::string file = folder.path(fmt::format("{}.json", members));
    const bool done = run_silently(
        {"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", std::to_string(members),
         std::filesystem::read_symlink("/proc/self/exe").string(), "bench", "collectives",
         "--repeat", std::to_string(recorder.repeats()), "--json", file});
    if (!done) return recorder.note("mpi: mpirun has failed, or is not there");
    const nlohmann::json measured = nlohmann::json::parse(std::ifstream(file));
    for (const auto& figure : measured["figures"]) {
      recorder.add({figure["name"], figure["unit"], summary_of(figure["value"]), {}});
    }
  }
}

}  // namespace paceline::bench
