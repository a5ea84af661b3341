#include "bench/cases.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/cores.h"
#include "base/nearest.h"
#include "base/pinned.h"
#include "base/temporary_folder.h"
#include "base/thread_pool.h"
#include "bench/channel.h"
#include "bench/executor_rates.h"
#include "bench/input_rates.h"
#include "bench/kernel_rates.h"
#include "bench/link_rates.h"
#include "bench/peer_process.h"
#include "bench/recorder.h"
#include "bench/reducer.h"
#include "bench/reducing_group.h"
#include "bench/roof.h"
#include "bench/shared_word.h"
#include "bench/summary.h"
#include "bench/timing.h"
#include "bench/train_run.h"
#include "kernels/cpu/gemm.h"
#include "kernels/rule_kernel.h"
#include "kernels/testing/custom_rules.h"
#include "models/fetch.h"
#include "paceline/error.h"
#include "params/collective/mpi_collectives.h"
#include "params/collective/mpi_library.h"
#include "predict/memory_passes.h"
#include "predict/rule_passes.h"

namespace paceline::bench {
namespace {

// The sizes and groups for which the case `collectives` measures each engine.
struct ReducedSize {
  const char* name;
  std::size_t bytes;
};
constexpr ReducedSize kReducedSizes[] = {{"4 KB", 4 << 10},
                                         {"64 KB", 64 << 10},
                                         {"1 MB", 1 << 20},
                                         {"16 MB", 16 << 20},
                                         {"75 MB", 75'000'000}};
constexpr int kReducingMembers[] = {2, 4};
/// A figure is the mean of as many reductions as take at least this time together, but of at most
/// kMostReductions.
constexpr double kLeastReducingSeconds = 0.1;
constexpr int kMostReductions = 10'000;

/// Returns a name such as "75 MB between 2, shm".
std::string reduction_name(const ReducedSize& size, int members, const std::string& engine) {
  return fmt::format("{} between {}, {}", size.name, members, engine);
}

// The times of all-reduces by MPI.

constexpr double kMicrosOfMpi = 1e6;

/// A rank that makes all-reduces of one size. All ranks make the same calls.
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

  // Waits for all ranks. Returns the `own` of the first rank.
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

// Runs a command without its output. Returns false if it fails or there is no such program.
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

/// Runs in each process that mpirun starts. Only the first rank's figures are used.
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

/// Measures each size in processes that mpirun starts. If that is not possible, notes the reason.
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

constexpr const ReducedSize& kLargest = kReducedSizes[4];
constexpr double kInMicros = 1e6, kInMillis = 1e3;

// Returns the mean time of as many reductions as take at least kLeastReducingSeconds, or of
// kMostReductions.
double mean_time(ReducingGroup& group) {
  group.reduce();  // not timed: the first reduction may have to fill the caches again
  double sum = 0;
  int times = 0;
  while (sum < kLeastReducingSeconds && times < kMostReductions) {
    sum += group.reduce();
    ++times;
  }
  return sum / times;
}

// Measures a reduction beside its bound: the time to read each contribution once, and to write one
// result, at the rate of copies.
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

/// The case `collectives`. Each figure is the time from the moment at which all members have opened
/// a reduction until the first member has all sums: no step is made and nothing is committed.
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

// Bare loops with which the workload `fetch` is compared. They compute the same products over as
// many bytes, and nothing else.

using models::FetchShape;

constexpr std::size_t kRequestBytes = 36;  // a header and a piece's number
constexpr double kMicroseconds = 1e6, kLeastSeconds = 0.05;
constexpr int kTurns = 40, kTimes = 50;

std::size_t floats_of(const FetchShape& shape) {
  return std::size_t(shape.features * shape.hidden);
}

/// The matrix product of the workload.
class Product {
 public:
  explicit Product(const FetchShape& shape)
      : gemm_(GemmShape::packed(shape.batch, shape.hidden, shape.features), one_thread_),
        x_(std::size_t(shape.batch * shape.features), 1),
        y_(std::size_t(shape.batch * shape.hidden)),
        scratch_(gemm_.scratch_bytes()) {}
  void multiply(const float* w) { gemm_.run(x_.data(), w, y_.data(), scratch_.span()); }

 private:
  ThreadPool one_thread_{1};
  Gemm gemm_;
  const std::vector<float> x_;
  std::vector<float> y_;
  const Buffer scratch_;
};

/// A value that another process rewrites on request, as a ps does.
class RewrittenValue {
 public:
  RewrittenValue(std::size_t floats, const Pinned& near)
      : floats_(floats), value_(floats * sizeof(float)), far_end_([this] { serve(); }, &near) {}
  const float* data() const { return floats().data(); }
  void ask() { words_->asked.set(++asked_); }
  void wait() { words_->done.wait_for(asked_); }

 private:
  struct RewriteWords {
    SharedWord asked, done;
  };

  std::span<float> floats() const { return {reinterpret_cast<float*>(value_.data()), floats_}; }
  [[noreturn]] void serve() {
    std::vector<float> next(floats_);
    for (std::uint32_t seen = 0;; words_->done.set(++seen)) {
      words_->asked.wait_for(seen + 1);
      for (std::size_t i = 0; i < floats_; ++i) next[i] = floats()[i] + 1;
      apply_rule(Assign{}, {}, {.values = floats(), .slots = {}, .gradient = next});
    }
  }

  const std::size_t floats_;
  const SharedBytes value_;
  SharedObject<RewriteWords> words_;
  std::uint32_t asked_ = 0;
  PeerProcess far_end_;
};

double us_of(const Call& call) {
  const auto began = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() *
         kMicroseconds;
}

/// Returns by how many µs `with` is longer than `without`. Measures both in turn, as the workload
/// does: the result is the median, over all turns, of the difference of their medians. Calls
/// `after` after each `with`, untimed.
double added_us(const Call& without, const Call& with, const Call& after) {
  std::vector<double> added;
  for (int turn = 0; turn < kTurns; ++turn) {
    std::vector<double> plain, longer;
    for (int i = 0; i < kTimes; ++i) plain.push_back(us_of(without));
    for (int i = 0; i < kTimes; ++i) {
      longer.push_back(us_of(with));
      after();
    }
    added.push_back(summarize(longer).median - summarize(plain).median);
  }
  return summarize(added).median;
}

ChannelOptions fetching(const FetchShape& shape, const Pinned& near) {
  return {.message = {1, floats_of(shape) * sizeof(float)},
          .echo = true,
          .request_bytes = kRequestBytes,
          .near = &near};
}

/// Returns how many µs longer a product takes if another process has just rewritten W in shared
/// memory, and rewrites it again, on request, during the product.
double added_by_rewriting(const FetchShape& shape) {
  const Pinned near(0);
  RewrittenValue value(floats_of(shape), near);
  Product product(shape);
  const Call multiply = [&] { product.multiply(value.data()); };
  const Call ask_and_multiply = [&] {
    value.ask();
    multiply();
  };
  return added_us(multiply, ask_and_multiply, [&] { value.wait(); });
}

/// Returns the µs in which W's bytes are requested and arrive over a bare socket, by the same kind
/// of request as a worker's.
double socket_exchange_us(const FetchShape& shape) {
  const Pinned near(0);
  const auto channel = make_socket_channel(fetching(shape, near));
  return time_calls(1, kLeastSeconds, [&] { channel->exchange(); }).front() * kMicroseconds;
}

/// Returns how many µs longer a product takes if W arrived over a bare socket just before it. This
/// includes the wait for W, and the product's loss because its operands have left the cache.
double added_by_socket(const FetchShape& shape) {
  const Pinned near(0);
  std::vector<float> own(floats_of(shape), 1), fetched(floats_of(shape), 1);
  ChannelOptions options = fetching(shape, near);
  options.answer = reinterpret_cast<std::byte*>(fetched.data());
  const auto channel = make_socket_channel(options);
  Product product(shape);
  const Call fetch_and_multiply = [&] {
    channel->exchange();
    product.multiply(fetched.data());
  };
  return added_us([&] { product.multiply(own.data()); }, fetch_and_multiply, [] {});
}

/// A kind of fetch: the link, and whether the value is constant or rewritten by the ps.
struct Fetched {
  std::string link;
  bool constant = false;

  std::string str() const { return link + (constant ? ", constant" : ""); }
};

Report run_fetch(const Fetched& fetched) {
  std::vector<std::string> arguments = {"train", "fetch",     "--ps", "1",      "--workers",
                                        "1",     "--threads", "1",    "--link", fetched.link};
  if (fetched.constant) arguments.emplace_back("--constant");
  return run_train(arguments);
}

/// The times that are measured in turn: those of the workload, and those of the bare loops with
/// which it is compared.
struct FetchTimes {
  std::vector<double> added, bare, socket_and_product;
};

void measure_bare(FetchTimes& times, const Fetched& fetched, const FetchShape& shape) {
  if (fetched.constant) return;
  if (fetched.link == "shm") return times.bare.push_back(added_by_rewriting(shape));
  times.bare.push_back(socket_exchange_us(shape));
  times.socket_and_product.push_back(added_by_socket(shape));
}

void add_figures(Recorder& recorder, const Fetched& fetched, const FetchShape& shape,
                 const FetchTimes& times) {
  const std::string name = fmt::format("{}, {}, added", shape.str(), fetched.str());
  if (fetched.constant) return recorder.add(figure_of(name, "us", times.added));
  const char* const beside = fetched.link == "shm" ? "bare product" : "bare socket";
  recorder.add(figure_beside(name, "us", times.added, beside, times.bare));
  if (times.socket_and_product.empty()) return;
  recorder.add(figure_beside(name + " by a bare socket", "us", times.socket_and_product, beside,
                             times.bare));
}

void measure_one(Recorder& recorder, const Fetched& fetched) {
  const std::vector<FetchShape> shapes = models::fetch_shapes(models::fetch_model().settings());
  std::vector<FetchTimes> times(shapes.size());
  for (int repeat = 0; repeat < recorder.repeats(); ++repeat) {
    recorder.progress(fmt::format("{}, {} of {}", fetched.str(), repeat + 1, recorder.repeats()));
    const Report report = run_fetch(fetched);
    for (std::size_t i = 0; i < times.size(); ++i) {
      times[i].added.push_back(value_of(report, shapes[i].section(), "added_us"));
      measure_bare(times[i], fetched, shapes[i]);
    }
  }
  for (std::size_t i = 0; i < times.size(); ++i)
    add_figures(recorder, fetched, shapes[i], times[i]);
}

/// The case `fetch`: the µs that fetching adds to a step, for the workload's three shapes. Over
/// shared memory, they are compared with re-reading memory that another process rewrites meanwhile;
/// over tcp, with a bare socket loop of the same bytes. The two sides run in turn. A constant value
/// is measured, too. Workers compute on one thread.
void measure_fetch(Recorder& recorder) {
  for (const char* link : {"shm", "tcp"}) {
    measure_one(recorder, {link});
    measure_one(recorder, {link, true});
  }
}

constexpr double kNano = 1e9;

std::vector<double> scaled(std::vector<double> values, double factor) {
  for (double& value : values) value *= factor;
  return values;
}

std::string on_threads(std::string_view what, int threads) {
  return fmt::format("{}, {} thread{}", what, threads, threads == 1 ? "" : "s");
}

void measure_rule(Recorder& recorder, const Rule& rule, RulePasses& passes, int threads) {
  const std::string name = on_threads(rule.name(), threads);
  recorder.progress(name);
  MemoryPasses memory(threads);
  const PairedTimes times = time_in_turn(
      recorder.repeats(), 0.05, [&] { passes.apply(rule); }, [&] { memory.update(); });
  const auto elements = double(passes.elements());
  const double bytes = passes.bytes(rule) / elements;
  recorder.add(figure_beside(name, "ns", scaled(times.first, kNano / elements), "memory bound",
                             scaled(times.second, kNano * bytes / memory.update_bytes())));
}

// Measures Adam as a CustomRule beside the library's own Adam, in turn.
void measure_written_adam(Recorder& recorder, RulePasses& passes, int threads) {
  const std::string name = on_threads("adam written out", threads);
  recorder.progress(name);
  const Rule written = written_adam(), built_in = Adam{};
  const PairedTimes times = time_in_turn(
      recorder.repeats(), 0.05, [&] { passes.apply(written); }, [&] { passes.apply(built_in); });
  const double scale = kNano / double(passes.elements());
  recorder.add(figure_beside(name, "ns", scaled(times.first, scale), "built in",
                             scaled(times.second, scale)));
}

/// The case `rules`: ns per element of each rule over a variable that is larger than any cache, on
/// one thread and on all. Beside it stands the time of the rule's bytes at the rate of a plain
/// update of memory.
void measure_rules(Recorder& recorder) {
  std::vector<int> counts = {1};
  if (usable_cores() > 1) counts.push_back(usable_cores());
  for (const int threads : counts) {
    RulePasses passes(threads);
    for (const Rule& rule :
         std::initializer_list<Rule>{Sgd{}, Momentum{}, Adam{}, AdamW{}, Adagrad{}, Rmsprop{},
                                     Ftrl{}, Ema{}, Add{}, Assign{}}) {
      measure_rule(recorder, rule, passes, threads);
    }
    measure_written_adam(recorder, passes, threads);
  }
}

constexpr Case kCases[] = {
    {"roof", "What this machine can do: products, memory, links", measure_roof},
    {"links", "Every link, compared with a bare socket or a bare ring in memory", measure_links},
    {"fetch", "What fetching a small variable adds, compared with bare loops of the same bytes",
     measure_fetch},
    {"collectives", "All-reduce by engine, processes and size, compared with memory's copy rate",
     measure_collectives},
    {"rules", "Every update rule, compared with the rate of memory", measure_rules},
    {"kernels", "The main ops in the workloads' shapes, compared with the roof", measure_kernels},
    {"input", "Input pipelines: distorted CIFAR-10 records, a folder of JPEG files", measure_input},
    {"executor", "The time per tiny op, of the accounting, and until a deep graph can train",
     measure_executor},
    {"step", "Any workload in any shape of cluster, compared with its bound", nullptr},
};

}  // namespace

std::span<const Case> all_cases() { return kCases; }

const Case& find_case(std::string_view name) {
  const auto known = std::ranges::find(kCases, name, &Case::name);
  if (known != std::end(kCases)) return *known;
  if (name == "reports" || name == "foresight" || name == "predictions") {
    throw Error(ErrorCode::kUsage,
                fmt::format("the case {} is measured by a command of its own: paceline-evidence {} "
                            "(cmake --preset evidence && cmake --build --preset evidence)",
                            name, name == "foresight" ? "predictions" : name));
  }
  std::vector<std::string_view> names;
  for (const Case& each : kCases) names.push_back(each.name);
  throw Error(ErrorCode::kUsage, fmt::format("unknown case '{}'{} ({})", name,
                                             did_you_mean(name, names), fmt::join(names, ", ")));
}

}  // namespace paceline::bench
