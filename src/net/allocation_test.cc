// Tests that sending and receiving frames allocates nothing once a connection has warmed up.
#include "base/allocation_hook.h"

#include <condition_variable>

#include "net/heartbeat_thread.h"
#include "net/testing/conformance.h"

namespace paceline {
namespace {

/// Counts frames, and answers each with its payload if `reply` is set.
class EchoReceiver : public Receiver {
 public:
  std::span<std::byte> place_payload(const FrameHeader& header) override {
    return room_.span().first(header.payload_bytes);
  }
  void on_frame(const FrameHeader& header, std::span<const std::byte> payload) override {
    std::lock_guard lock(mutex_);
    if (reply) reply->send(header, payload);
    ++frames_;
    changed_.notify_all();
  }
  void on_closed(const Error&) override { reply.reset(); }

  bool wait_frames(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return frames_ >= count; });
  }

  std::shared_ptr<Connection> reply;

 private:
  Buffer room_{2 << 20};
  std::mutex mutex_;
  std::condition_variable changed_;
  int frames_ = 0;
};

class Allocation : public testing::TestWithParam<LinkCase> {};

/// Leaves out TLS, since OpenSSL allocates for each record.
std::vector<LinkCase> links_without_tls() {
  std::vector<LinkCase> links = links_to_test();
  std::erase_if(links, [](const LinkCase& link) { return link.kind == "tls"; });
  return links;
}

INSTANTIATE_TEST_SUITE_P(Links, Allocation, testing::ValuesIn(links_without_tls()),
                         [](const auto& one) { return one.param.kind; });

TEST_P(Allocation, FramesNeedNone) {
  if (!allocations_are_counted()) GTEST_SKIP() << "a sanitizer has malloc";
  const TestNetwork network;
  EchoReceiver near, far;
  LinkOptions options;
  options.ticks = std::make_shared<ManualTicks>();  // a pass over all connections may allocate
  const auto far_link = network.make(GetParam().kind, options);
  const std::string address =
      far_link->listen(GetParam().any_address, [&](std::shared_ptr<Connection> connection) {
        far.reply = std::move(connection);
        return &far;
      });
  const auto link = network.make(GetParam().kind, options);
  const auto connection = link->connect(address, near, Deadline::after(kPatience));
  const auto payload = pattern(2 << 20, 1);
  SentCounter sent;
  int rounds = 0;
  const auto make_rounds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      connection->send({}, std::span(payload).first(i % 2 == 0 ? 8 : payload.size()),
                       &SentCounter::add, &sent);
      if (!near.wait_frames(++rounds) || !sent.wait(rounds)) return false;
    }
    return true;
  };
  ASSERT_TRUE(make_rounds(20));
  const std::int64_t before = allocation_counts().ours;
  ASSERT_TRUE(make_rounds(200));
  EXPECT_EQ(allocation_counts().ours - before, 0);
}

}  // namespace
}  // namespace paceline
