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
  explicit RewrittenValue(std::size_t floats)
      : floats_(floats), bytes_(floats * sizeof(float)), far_end_([this] { serve(); }) {}

  /// µs that reading it, as often as a product of the workload does, takes longer while it is
  /// written anew: medians of many.
  double added_us() {
    std::vector<double> still, rewritten;
    for (std::uint32_t i = 1; i <= kPasses; ++i) {
      read();
      still.push_back(time_read());
      words_->asked.set(++asked_, Waiting::kSpinning);
      rewritten.push_back(time_read());
      words_->done.wait(Waiting::kSpinning, [&](std::uint32_t done) { return done == asked_; });
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
    for (std::uint32_t seen = 0;; words_->done.set(++seen, Waiting::kSpinning)) {
      words_->asked.wait(Waiting::kSpinning, [&](std::uint32_t asked) { return asked != seen; });
      for (std::size_t i = 0; i < floats_; ++i) next[i] = values[i] + 1;
      apply_rule(Assign{}, {}, {.values = {values, floats_}, .slots = {}, .gradient = next});
    }
  }
  void read() {
    const auto* const values = reinterpret_cast<const std::uint32_t*>(bytes_.data());
    std::uint32_t sums[kTurn] = {};
    for (std::size_t i = 0; i < kReadings * floats_; i += kTurn) {
      for (std::size_t k = 0; k < kTurn; ++k) sums[k] += values[i % floats_ + k];
    }
    for (const std::uint32_t sum : sums) sum_ = sum_ + sum;
  }
  double time_read() {
    const auto began = std::chrono::steady_clock::now();
    read();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }

  const std::size_t floats_;
  SharedBytes bytes_;
  SharedObject<RewriteWords> words_;
  std::uint32_t asked_ = 0;
  volatile std::uint32_t sum_ = 0;  // or nothing need be read
  FarEnd far_end_;
};

double socket_us(std::size_t bytes) {
  const auto channel =
      make_socket_channel({.message = {1, bytes}, .echo = true, .request_bytes = kRequestBytes});
  return time_calls(1, kLeastFetchSeconds, [&] { channel->exchange(); }).front() * kFetchMicro;
}

Report run_fetch(const std::string& link, bool constant) {
  std::vector<std::string> arguments = {"train", "fetch",     "--ps", "1",      "--workers",
                                        "1",     "--threads", "1",    "--link", link};
  if (constant) arguments.emplace_back("--constant");
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

void measure_changing(Recorder& recorder, const std::string& link) {
  const bool shared = link == "shm";
  FetchTimes times;
  for (int repeat = 0; repeat < recorder.repeats(); ++repeat) {
    recorder.progress(fmt::format("{}, {} of {}", link, repeat + 1, recorder.repeats()));
    times.add(run_fetch(link, false));
    for (std::size_t i = 0; i < times.bare.size(); ++i) {
      const std::size_t floats = kFetchedShapes[i].floats;
      times.bare[i].push_back(shared ? RewrittenValue(floats).added_us()
                                     : socket_us(floats * sizeof(float)));
    }
  }
  for (std::size_t i = 0; i < times.added.size(); ++i) {
    recorder.add(figure_beside(fmt::format("{}, {}, added", kFetchedShapes[i].name, link), "us",
                               times.added[i], shared ? "bare re-reading" : "bare socket",
                               times.bare[i]));
  }
}

void measure_constant(Recorder& recorder, const std::string& link) {
  FetchTimes times;
  for (int repeat = 0; repeat < recorder.repeats(); ++repeat) {
    recorder.progress(fmt::format("{}, constant, {}", link, repeat + 1));
    times.add(run_fetch(link, true));
  }
  for (std::size_t i = 0; i < times.added.size(); ++i) {
    recorder.add(figure_of(fmt::format("{}, {}, constant, added", kFetchedShapes[i].name, link),
                           "us", times.added[i]));
  }
}

}  // namespace

void measure_fetch(Recorder& recorder) {
  for (const char* link : {"shm", "tcp"}) {
    measure_changing(recorder, link);
    measure_constant(recorder, link);
  }
}

}  // namespace paceline::bench
