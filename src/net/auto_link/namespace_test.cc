// Two network namespaces count as two hosts, although they have one host name and one memory.
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "net/testing/conformance.h"

namespace paceline {
namespace {

using testing::HasSubstr;

constexpr const char* kHere = "10.231.77.1:0";

/// Two namespaces for this test, with a cable between them.
class Namespaces : public testing::Test {
 protected:
  void SetUp() override {
    const bool made =
        ::geteuid() == 0 && run("ip netns add " + a_) && run("ip netns add " + b_) &&
        run("ip link add cable netns " + a_ + " type veth peer name cable netns " + b_) &&
        run("ip -n " + a_ + " addr add 10.231.77.1/24 dev cable") &&
        run("ip -n " + b_ + " addr add 10.231.77.2/24 dev cable") &&
        run("ip -n " + a_ + " link set cable up") && run("ip -n " + a_ + " link set lo up") &&
        run("ip -n " + b_ + " link set cable up");
    if (!made) GTEST_SKIP() << "no network namespaces can be made here (root? ip netns?)";
  }
  ~Namespaces() override {
    run("ip netns del " + a_);
    run("ip netns del " + b_);
  }

  static bool run(const std::string& command) {
    const int status = std::system((command + " >/dev/null 2>&1").c_str());
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  /// Runs `call` on a thread in the network namespace `name`. Threads and sockets that `call` makes
  /// belong to that namespace, too.
  template <typename Call>
  static void in(const std::string& name, Call call) {
    std::thread([&] {
      const FileDescriptor space(::open(("/var/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC));
      ASSERT_EQ(::setns(space.get(), CLONE_NEWNET), 0);
      call();
    }).join();
  }
  /// Returns the bytes sent by the calling thread's end of the cable.
  static std::int64_t bytes_sent() {
    std::ifstream counts("/proc/thread-self/net/dev");
    for (std::string word; counts >> word;) {
      if (word != "cable:") continue;
      std::int64_t number = 0;
      for (int column = 0; column < 9; ++column) counts >> number;
      return number;
    }
    return -1;
  }

  const std::string a_ = "paceline-a-" + std::to_string(::getpid());
  const std::string b_ = "paceline-b-" + std::to_string(::getpid());
};

TEST_F(Namespaces, ShareNoMemoryAndTheBytesGoOverTheirLink) {
  std::unique_ptr<Listener> listener;
  in(a_, [&] { listener = std::make_unique<Listener>(make_link("auto", {}), kHere); });
  const auto payload = pattern(8 << 20, 1);
  in(b_, [&] {
    TestReceiver receiver;
    const auto link = make_link("auto", {});
    const auto connection =
        link->connect(listener->address(), receiver, Deadline::after(kPatience));
    EXPECT_FALSE(connection->can_share());
    const std::int64_t before = bytes_sent();
    ASSERT_GE(before, 0);
    connection->send({}, payload);
    ASSERT_TRUE(listener->receiver(0)->wait_frames(1));
    EXPECT_GT(bytes_sent() - before, std::int64_t(payload.size()));
  });
  in(a_, [&] {
    TestReceiver receiver;
    const auto link = make_link("auto", {});
    EXPECT_TRUE(
        link->connect(listener->address(), receiver, Deadline::after(kPatience))->can_share());
  });
}

// Both ends of the cut connection report silence, and neither says that the other's process has
// stopped.
TEST_F(Namespaces, ACutCableIsNotCalledAStoppedProcess) {
  std::unique_ptr<Listener> listener;
  in(a_, [&] { listener = std::make_unique<Listener>(make_link("tcp", {}), kHere); });
  in(b_, [&] {
    TestReceiver receiver;
    const auto link = make_link("tcp", {});
    const auto connection =
        link->connect(listener->address(), receiver, Deadline::after(kPatience));
    connection->send({}, {});
    ASSERT_TRUE(listener->receiver(0)->wait_frames(1));
    ASSERT_TRUE(run("ip -n " + a_ + " link set cable down"));
    const std::string words = " answers no more: its host is down or the network is cut";
    EXPECT_THAT(receiver.wait_closed().what(), HasSubstr(connection->peer() + words));
    EXPECT_THAT(listener->receiver(0)->wait_closed().what(), HasSubstr(words));
  });
}

TEST_F(Namespaces, AreNamedByALinkThatMustShare) {
  std::unique_ptr<Listener> listener;
  in(a_, [&] { listener = std::make_unique<Listener>(make_link("shm", {}), kHere); });
  in(b_, [&] {
    TestReceiver receiver;
    const auto link = make_link("shm", {});
    try {
      link->connect(listener->address(), receiver, Deadline::after(kPatience));
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << "trying again does not help";
      EXPECT_THAT(error.what(), HasSubstr("another network namespace"));
    }
  });
}

}  // namespace
}  // namespace paceline
