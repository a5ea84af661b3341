#include "net/poll/poller.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <condition_variable>

namespace paceline {
namespace {

using testing::ElementsAre;

Deadline soon() { return Deadline::after(std::chrono::seconds(60)); }

struct SocketPair {
  SocketPair() {
    std::array<int, 2> fds{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
    near = FileDescriptor(fds[0]);
    far = FileDescriptor(fds[1]);
  }
  FileDescriptor near, far;
};

void write_byte(const FileDescriptor& fd) { EXPECT_EQ(::write(fd.get(), "x", 1), 1); }

/// Counts how often something has happened. Thread-safe.
class Count {
 public:
  void add() {
    const std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  /// Returns true as soon as add() was called `count` times.
  bool wait(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, soon().time(), [&] { return count_ >= count; });
  }
  int value() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

class CountingWatcher : public Watcher {
 public:
  void on_readable() override { readable.add(); }
  void on_writable() override { writable.add(); }

  Count readable, writable;
};

class PollerTest : public testing::Test {
 protected:
  /// Returns when the poller, which has one thread, has done everything that was requested before
  /// this call.
  void let_it_work() {
    Count worked;
    poller_->call_at(std::chrono::steady_clock::now(), [&] { worked.add(); });
    EXPECT_TRUE(worked.wait(1));
  }

  const std::shared_ptr<Poller> poller_ = std::make_shared<Poller>(1);
  const std::shared_ptr<CountingWatcher> watcher_ = std::make_shared<CountingWatcher>();
  SocketPair sockets_;
};

TEST_F(PollerTest, AWaitEndsOnceWhenSomethingHasCome) {
  Watch watch(poller_, std::move(sockets_.near));
  watch.wait_readable(watcher_);
  write_byte(sockets_.far);
  EXPECT_TRUE(watcher_->readable.wait(1));
  write_byte(sockets_.far);
  let_it_work();
  EXPECT_EQ(watcher_->readable.value(), 1);
  watch.wait_readable(watcher_);  // bytes that arrived before the wait also end it
  EXPECT_TRUE(watcher_->readable.wait(2));
}

TEST_F(PollerTest, WaitsOfBothKindsEndEachForItself) {
  Watch watch(poller_, std::move(sockets_.near));
  watch.wait_readable(watcher_);
  watch.wait_writable(watcher_);
  EXPECT_TRUE(watcher_->writable.wait(1));
  EXPECT_EQ(watcher_->readable.value(), 0);
  write_byte(sockets_.far);
  EXPECT_TRUE(watcher_->readable.wait(1));
}

TEST_F(PollerTest, ThePeersEndEndsAWait) {
  Watch watch(poller_, std::move(sockets_.near));
  watch.wait_readable(watcher_);
  sockets_.far = FileDescriptor();
  EXPECT_TRUE(watcher_->readable.wait(1));
}

TEST_F(PollerTest, AWaitThatIsCancelledIsForgotten) {
  Watch watch(poller_, std::move(sockets_.near));
  watch.wait_readable(watcher_);
  watch.cancel_readable();
  EXPECT_EQ(watcher_.use_count(), 1);
  write_byte(sockets_.far);
  sockets_.far = FileDescriptor();
  let_it_work();
  EXPECT_EQ(watcher_->readable.value(), 0);
}

TEST_F(PollerTest, ADescriptorOutlivesItsWatch) {
  FileDescriptor kept;
  {
    Watch watch(poller_, std::move(sockets_.near));
    watch.wait_readable(watcher_);
    kept = watch.release();
  }
  write_byte(sockets_.far);
  let_it_work();
  EXPECT_EQ(watcher_->readable.value(), 0);
  char byte = 0;
  EXPECT_EQ(::read(kept.get(), &byte, 1), 1);
}

TEST_F(PollerTest, CallsComeInTheOrderOfTheirTimes) {
  const TimePoint now = std::chrono::steady_clock::now();
  std::vector<int> called;
  Count done;
  poller_->call_at(now + std::chrono::milliseconds(20), [&] {
    called.push_back(3);
    done.add();
  });
  poller_->call_at(now + std::chrono::milliseconds(10), [&] { called.push_back(2); });
  poller_->call_at(now - std::chrono::milliseconds(10), [&] { called.push_back(1); });
  EXPECT_TRUE(done.wait(1));
  EXPECT_GE(std::chrono::steady_clock::now(), now + std::chrono::milliseconds(20));
  EXPECT_THAT(called, ElementsAre(1, 2, 3));
}

TEST(Poller, ACallThatTakesLongDelaysNoOther) {
  Poller poller(2);
  const TimePoint now = std::chrono::steady_clock::now();
  Count called;
  std::atomic<bool> waited{false};
  poller.call_at(now, [&] { waited = called.wait(1); });
  poller.call_at(now + std::chrono::milliseconds(1), [&] { called.add(); });
  EXPECT_TRUE(called.wait(1));
  poller.stop();
  EXPECT_TRUE(waited);
}

TEST_F(PollerTest, LetsGoOfWhatHasNotComeWhenItStops) {
  Watch watch(poller_, std::move(sockets_.near));
  watch.wait_readable(watcher_);
  poller_->call_at(std::chrono::steady_clock::now() + std::chrono::hours(1),
                   [watcher = watcher_] { watcher->on_readable(); });
  poller_->stop();
  EXPECT_EQ(watcher_.use_count(), 3);
  poller_->drop_pending();
  EXPECT_EQ(watcher_.use_count(), 1);
  EXPECT_EQ(watcher_->readable.value(), 0);
}

}  // namespace
}  // namespace paceline
