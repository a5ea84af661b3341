#include "bench/bare_fetch.h"

#include <chrono>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "base/pinned.h"
#include "base/thread_pool.h"
#include "bench/channel.h"
#include "bench/peer_process.h"
#include "bench/shared_word.h"
#include "bench/summary.h"
#include "bench/timing.h"
#include "kernels/cpu/gemm.h"
#include "kernels/rule_kernel.h"

namespace paceline::bench {
namespace {

constexpr std::size_t kRequestBytes = 36;  // a header and a piece's number
constexpr double kMicroseconds = 1e6, kLeastSeconds = 0.05;
constexpr int kTurns = 40, kTimes = 50;

std::size_t floats_of(const FetchShape& shape) {
  return std::size_t(shape.features * shape.hidden);
}

/// The workload's product.
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

/// A value that a process writes anew when it is asked to, as a ps does.
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

/// Returns the added µs, measured by turns as the workload does: medians of medians. `after` is not
/// timed.
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

}  // namespace

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

double socket_exchange_us(const FetchShape& shape) {
  const Pinned near(0);
  const auto channel = make_socket_channel(fetching(shape, near));
  return time_calls(1, kLeastSeconds, [&] { channel->exchange(); }).front() * kMicroseconds;
}

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

}  // namespace paceline::bench
