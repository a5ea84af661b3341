#include "bench/fetch_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "bench/channel.h"
#include "bench/far_end.h"
#include "bench/shared_word.h"
#include "bench/timing.h"
#include "bench/train_run.h"
#include "kernels/rule_kernel.h"

namespace paceline::bench {
namespace {

struct FetchedShape {
  const char* name;
  std::size_t floats;  // of the fetched variable
};
constexpr FetchedShape kFetchedShapes[] = {
    {"128,32,256", 128 * 256}, {"256,128,128", 256 * 128}, {"256,128,64", 256 * 64}};
constexpr std::size_t kRequestBytes = 36;  // a header and a piece's number
constexpr double kFetchMicro = 1e6, kLeastFetchSeconds = 0.05;

/// A value that a process writes anew when it is asked to, as a ps does, and that this one reads.
class RewrittenValue {
 public:
  RewrittenValue(std::size_t floats, Waiting waiting)
      : floats_(floats),
        waiting_(waiting),
        bytes_(floats * sizeof(float)),
        far_end_([this] { serve(); }) {}

  /// µs that asking for it to be written anew and reading it meanwhile, as often as a product of
  /// the workload does, takes longer than reading it at rest: medians of many.
  double added_us() {
    std::vector<double> still, rewritten;
    for (std::uint32_t i = 1; i <= kPasses; ++i) {
      read();
      still.push_back(seconds_of([&] { read(); }));
      rewritten.push_back(seconds_of([&] {
        words_->asked.set(++asked_, waiting_);
        read();
      }));
      words_->done.wait(waiting_, [&](std::uint32_t done) { return done == asked_; });
    }
    return (summarize(rewritten).median - summarize(still).median) * kFetchMicro;
  }

 private:
  static constexpr std::uint32_t kPasses = 2000;
  static constexpr std::size_t kTurn = 64;
  static constexpr int kReadings = 16;
  struct RewriteWords {
    SharedWord asked, done;
  };

  [[noreturn]] void serve() {
    auto* const values = reinterpret_cast<float*>(bytes_.data());
    std::vector<float> next(floats_);
    for (std::uint32_t seen = 0;; words_->done.set(++seen, waiting_)) {
      words_->asked.wait(waiting_, [&](std::uint32_t asked) { return asked != seen; });
      for (std::size_t i = 0; i < floats_; ++i) next[i] = values[i] + 1;
      apply_rule(Assign{}, {}, {.values = {values, floats_}, .slots = {}, .gradient = next});
    }
  }
  // Not inlined: its two callers are to run the same instructions.
  [[gnu::noinline]] void read() {
    const auto* const values = reinterpret_cast<const std::uint32_t*>(bytes_.data());
    std::uint32_t sums[kTurn] = {};
    for (std::size_t i = 0; i < kReadings * floats_; i += kTurn) {
      for (std::size_t k = 0; k < kTurn; ++k) sums[k] += values[i % floats_ + k];
    }
    for (const std::uint32_t sum : sums) sum_ = sum_ + sum;
  }
  template <typename Work>
  static double seconds_of(const Work& work) {
    const auto began = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }

  const std::size_t floats_;
  const Waiting waiting_;
  SharedBytes bytes_;
  SharedObject<RewriteWords> words_;
  std::uint32_t asked_ = 0;
  volatile std::uint32_t sum_ = 0;  // or nothing need be read
  FarEnd far_end_;
};

double socket_us(std::size_t bytes, Waiting waiting) {
  const auto channel = make_socket_channel(
      {.message = {1, bytes}, .waiting = waiting, .echo = true, .request_bytes = kRequestBytes});
  return time_calls(1, kLeastFetchSeconds, [&] { channel->exchange(); }).front() * kFetchMicro;
}

/// How both tasks wait for each other, and whether the ps writes the value anew.
struct Fetched {
  std::string link;
  Waiting waiting = Waiting::kSpinning;
  bool constant = false;

  std::string str() const {
    return fmt::format("{}{}{}", link, waiting == Waiting::kSleeping ? ", sleeping" : "",
                       constant ? ", constant" : "");
  }
};

Report run_fetch(const Fetched& fetched) {
  std::vector<std::string> arguments = {"train", "fetch",     "--ps", "1",      "--workers",
                                        "1",     "--threads", "1",    "--link", fetched.link};
  if (fetched.constant) arguments.emplace_back("--constant");
  if (fetched.waiting == Waiting::kSleeping) {
    arguments.insert(arguments.end(), {"--set", "spin=0"});
  }
  return run_train(arguments).report;
}

/// Of one link and kind of value: by shape, then by repeat.
struct FetchTimes {
  std::vector<std::vector<double>> added, bare;
  FetchTimes() : added(std::size(kFetchedShapes)), bare(std::size(kFetchedShapes)) {}

  void add(const Report& report) {
    for (std::size_t i = 0; i < added.size(); ++i) {
      const auto value =
          section_value(report, std::string("fetch/") + kFetchedShapes[i].name, "added_us");
      added[i].push_back(value.value_or(0));
    }
  }
};

double bare_us(const Fetched& fetched, std::size_t floats) {
  return fetched.link == "shm" ? RewrittenValue(floats, fetched.waiting).added_us()
                               : socket_us(floats * sizeof(float), fetched.waiting);
}

void measure_one(Recorder& recorder, const Fetched& fetched) {
  FetchTimes times;
  for (int repeat = 0; repeat < recorder.repeats(); ++repeat) {
    recorder.progress(fmt::format("{}, {} of {}", fetched.str(), repeat + 1, recorder.repeats()));
    times.add(run_fetch(fetched));
    for (std::size_t i = 0; !fetched.constant && i < times.bare.size(); ++i) {
      times.bare[i].push_back(bare_us(fetched, kFetchedShapes[i].floats));
    }
  }
  const char* const beside = fetched.link == "shm" ? "bare re-reading" : "bare socket";
  for (std::size_t i = 0; i < times.added.size(); ++i) {
    const std::string name = fmt::format("{}, {}, added", kFetchedShapes[i].name, fetched.str());
    recorder.add(fetched.constant
                     ? figure_of(name, "us", times.added[i])
                     : figure_beside(name, "us", times.added[i], beside, times.bare[i]));
  }
}

}  // namespace

void measure_fetch(Recorder& recorder) {
  for (const char* link : {"shm", "tcp"}) {
    measure_one(recorder, {link});
    measure_one(recorder, {link, Waiting::kSpinning, true});
    measure_one(recorder, {link, Waiting::kSleeping});
  }
}

}  // namespace paceline::bench
