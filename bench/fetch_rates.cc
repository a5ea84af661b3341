#include "bench/fetch_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/buffer.h"
#include "base/thread_pool.h"
#include "bench/channel.h"
#include "bench/far_end.h"
#include "bench/pinned.h"
#include "bench/shared_word.h"
#include "bench/timing.h"
#include "bench/train_run.h"
#include "kernels/cpu/gemm.h"
#include "kernels/rule_kernel.h"

namespace paceline::bench {
namespace {

struct FetchedShape {
  const char* name;
  std::int64_t features, batch, hidden;
  /// Of the fetched variable.
  std::size_t floats() const { return std::size_t(features * hidden); }
};
constexpr FetchedShape kFetchedShapes[] = {
    {"128,32,256", 128, 32, 256}, {"256,128,128", 256, 128, 128}, {"256,128,64", 256, 128, 64}};
constexpr std::size_t kRequestBytes = 36;  // a header and a piece's number
constexpr double kFetchMicro = 1e6, kLeastFetchSeconds = 0.05;

/// A value that a process writes anew when it is asked to, as a ps does, and that this one
/// multiplies with, as the workload's step does: the same memory and product, and nothing else.
class RewrittenValue {
 public:
  RewrittenValue(const FetchedShape& shape, Waiting waiting)
      : waiting_(waiting),
        floats_(shape.floats()),
        value_(floats_ * sizeof(float)),
        product_(GemmShape::packed(shape.batch, shape.hidden, shape.features), one_thread_),
        x_(std::size_t(shape.batch * shape.features), 1),
        y_(std::size_t(shape.batch * shape.hidden)),
        scratch_(product_.scratch_bytes()),
        far_end_([this] { serve(); }) {}

  /// µs that a product takes longer when the value was written anew before it and, asked for with
  /// it, is again meanwhile: by turns, as the workload measures it, medians of medians.
  double added_us() {
    std::vector<double> added;
    for (int turn = 0; turn < kTurns; ++turn) {
      std::vector<double> still, rewritten;
      for (int i = 0; i < kTimes; ++i) still.push_back(seconds_of([this] { multiply(); }));
      for (int i = 0; i < kTimes; ++i) {
        rewritten.push_back(seconds_of([this] {
          words_->asked.set(++asked_, waiting_);
          multiply();
        }));
        words_->done.wait_for(asked_, waiting_);
      }
      added.push_back(summarize(rewritten).median - summarize(still).median);
    }
    return summarize(added).median * kFetchMicro;
  }

 private:
  static constexpr int kTurns = 40, kTimes = 50;
  struct RewriteWords {
    SharedWord asked, done;
  };

  [[noreturn]] void serve() {
    const std::span values(reinterpret_cast<float*>(value_.data()), floats_);
    std::vector<float> next(values.size());
    for (std::uint32_t seen = 0;; words_->done.set(++seen, waiting_)) {
      words_->asked.wait_for(seen + 1, waiting_);
      for (std::size_t i = 0; i < values.size(); ++i) next[i] = values[i] + 1;
      apply_rule(Assign{}, {}, {.values = values, .slots = {}, .gradient = next});
    }
  }
  void multiply() { product_.run(x_.data(), value_.data(), y_.data(), scratch_.span()); }
  template <typename Work>
  static double seconds_of(const Work& work) {
    const auto began = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }

  const Waiting waiting_;
  const std::size_t floats_;
  const SharedBytes value_;
  SharedObject<RewriteWords> words_;
  std::uint32_t asked_ = 0;
  ThreadPool one_thread_{1};
  Gemm product_;
  const std::vector<float> x_;
  std::vector<float> y_;
  const Buffer scratch_;
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

double added_us(const Report& report, const FetchedShape& shape) {
  return section_value(report, std::string("fetch/") + shape.name, "added_us").value_or(0);
}

double bare_us(const Fetched& fetched, const FetchedShape& shape) {
  const Pinned near(0);
  return fetched.link == "shm" ? RewrittenValue(shape, fetched.waiting).added_us()
                               : socket_us(shape.floats() * sizeof(float), fetched.waiting);
}

void measure_one(Recorder& recorder, const Fetched& fetched) {
  using ByShape = std::array<std::vector<double>, std::size(kFetchedShapes)>;
  ByShape added, bare;
  for (int repeat = 0; repeat < recorder.repeats(); ++repeat) {
    recorder.progress(fmt::format("{}, {} of {}", fetched.str(), repeat + 1, recorder.repeats()));
    const Report report = run_fetch(fetched);
    for (std::size_t i = 0; i < added.size(); ++i) {
      const FetchedShape& shape = kFetchedShapes[i];
      added[i].push_back(added_us(report, shape));
      if (fetched.constant) continue;
      bare[i].push_back(bare_us(fetched, shape));
    }
  }
  const char* const beside = fetched.link == "shm" ? "bare product" : "bare socket";
  for (std::size_t i = 0; i < added.size(); ++i) {
    const std::string name = fmt::format("{}, {}, added", kFetchedShapes[i].name, fetched.str());
    recorder.add(fetched.constant ? figure_of(name, "us", added[i])
                                  : figure_beside(name, "us", added[i], beside, bare[i]));
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
