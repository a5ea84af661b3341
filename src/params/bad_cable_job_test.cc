// A job over TCP whose cable changes a bit. The task that notices the change says so and names the
// other task. The connection is made anew, and the job ends as if nothing had been changed.
#include <gtest/gtest.h>

#include "net/tcp/tcp_header.h"
#include "net/testing/flipping_proxy.h"
#include "params/testing/job_fixture.h"
#include "params/wire/message.h"

namespace paceline {
namespace {

constexpr int kSteps = 3;

const std::vector<VariableSpec>& cable_variables() {
  static const std::vector<VariableSpec> specs = {
      {.name = "w", .shape = {4, 3}, .rule = Adam{}},
      {.name = "embedding", .shape = {10, 2}, .rule = Sgd{}, .sparse = true}};
  return specs;
}

/// One ps and one worker, and the cable between them.
class BadCableRun : public JobFixture {
 public:
  explicit BadCableRun(std::optional<Flip> flip) {
    spec_ = {.ps = {"127.0.0.1:0"}, .workers = {"127.0.0.1:1"}};
    std::promise<std::string> address;
    PsOptions options = ps_options(0);
    options.link_factory = nullptr;
    options.link = "tcp";
    options.listening = [&](const std::string& at) { address.set_value(at); };
    ps_tasks_.push_back(start_ps(options));
    proxy_.emplace(address.get_future().get());
    proxy_->set(flip);
    spec_.ps = {proxy_->address()};
  }

  /// Trains. Returns the error with which the worker ended; empty when the worker made all its
  /// steps.
  std::string train() {
    PsStoreOptions options = store_options(0);
    options.link_factory = nullptr;
    options.link = "tcp";
    try {
      const auto store = PsStore::join(options, cable_variables());
      store->write(initial_states(cable_variables()), 0);
      StepDriver driver(*store, true);
      for (int step = 0; step < kSteps; ++step) driver.step();
      values_ = everything(*store);
      for (const Way way : {Way::kToListener, Way::kToCaller})
        passed_[std::size_t(way)] = proxy_->most_passed(way);
      store->goodbye();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  /// Returns how many bytes had passed in this direction before the worker left.
  std::size_t passed(Way way) const { return passed_[std::size_t(way)]; }
  const FlippingProxy& proxy() const { return *proxy_; }
  const std::vector<std::vector<float>>& values() const { return values_; }
  using JobFixture::wait_said;

 private:
  void TestBody() override {}

  std::optional<FlippingProxy> proxy_;
  std::array<std::size_t, 2> passed_{};
  std::vector<std::vector<float>> values_;
};

class BadCableJob : public ::testing::TestWithParam<Way> {};

// Each run changes one byte: in the first run the first byte, and in each later run the byte that
// lies kStride further.
constexpr std::size_t kStride = 13;

// If a byte changes before the ps has welcomed the worker, no message tells of it: the bytes are
// just sent again.
const std::size_t kWelcomeBytes = kTcpFramingBytes + encode(Welcome{}).size();

TEST_P(BadCableJob, GoesOnAsIfNothingHadBeenChanged) {
  BadCableRun good(std::nullopt);
  ASSERT_EQ(good.train(), "");
  const std::size_t bytes = good.passed(GetParam());
  ASSERT_GT(bytes, 1000u);
  for (std::size_t byte = 0; byte < bytes; byte += kStride) {
    SCOPED_TRACE(byte);
    BadCableRun run(Flip{GetParam(), byte, int(byte % 8)});
    ASSERT_EQ(run.train(), "");
    EXPECT_EQ(run.values(), good.values());
    if (!run.proxy().flipped()) continue;  // this run sent fewer bytes than the first
    if (GetParam() == Way::kToListener) {
      EXPECT_TRUE(run.wait_said("lost "));
      EXPECT_TRUE(
          run.wait_said(byte < kTcpHeaderBytes ? "lost somebody at 127.0.0.1:" : " at 127.0.0.1:"));
    } else if (byte >= kWelcomeBytes) {
      EXPECT_TRUE(run.wait_said("lost ps:0 at " + run.proxy().address()));
      EXPECT_TRUE(run.wait_said(" is back after "));
    }
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, BadCableJob, ::testing::Values(Way::kToListener, Way::kToCaller),
                         [](const auto& one) {
                           return one.param == Way::kToListener ? "ToPs" : "ToWorker";
                         });

}  // namespace
}  // namespace paceline
