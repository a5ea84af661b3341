// Tests peers that die or stop, over each kind of link between processes.
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "net/testing/conformance.h"

namespace paceline {
namespace {

/// Runs this test program again as another process. That process connects here and waits; the test
/// can stop and kill it.
class ChildPeer {
 public:
  ChildPeer(const std::string& kind, const std::string& address) {
    std::string address_variable = "PACELINE_TEST_CONNECT=" + address;
    std::string kind_variable = "PACELINE_TEST_LINK=" + kind;
    std::vector<std::string> words = {"/proc/self/exe", "--gtest_filter=*IsAPeerInAProcessOfItsOwn",
                                      "--gtest_also_run_disabled_tests", "--gtest_brief=1"};
    std::vector<char*> arguments, environment = {address_variable.data(), kind_variable.data()};
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    for (char** one = ::environ; *one != nullptr; ++one) environment.push_back(*one);
    environment.push_back(nullptr);
    EXPECT_EQ(::posix_spawn(&pid_, "/proc/self/exe", nullptr, nullptr, arguments.data(),
                            environment.data()),
              0);
  }
  ~ChildPeer() {
    signal(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  void signal(int number) { ::kill(pid_, number); }

 private:
  pid_t pid_ = 0;
};

using testing::HasSubstr;

std::unique_ptr<Link> make_of(const std::string& kind) { return make_link(kind, {}); }

TEST(PeerProcess, DISABLED_IsAPeerInAProcessOfItsOwn) {
  const char* const address = std::getenv("PACELINE_TEST_CONNECT");
  const char* const kind = std::getenv("PACELINE_TEST_LINK");
  if (address == nullptr || kind == nullptr) GTEST_SKIP() << "run by the other tests";
  const auto payload = pattern(3 << 20, 1);
  TestReceiver receiver;
  const auto link = make_of(kind);
  const auto connection = link->connect(address, receiver, Deadline::after(kPatience));
  if (connection->can_share()) connection->share(1, SharedMemory::create(100));
  connection->send({.step = 1}, payload);
  receiver.wait_closed();
}

class PeerOver : public testing::TestWithParam<const char*> {
 protected:
  PeerOver() {
    if (child_receiver_ == nullptr || !child_receiver_->wait_frames(1)) ADD_FAILURE() << "no child";
  }

  Listener listener_{make_of(GetParam()), "127.0.0.1:0"};
  ChildPeer child_{GetParam(), listener_.address()};
  TestReceiver* const child_receiver_ = listener_.receiver(0);
};

INSTANTIATE_TEST_SUITE_P(Links, PeerOver, testing::Values("tcp", "shm", "auto"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(PeerOver, SharesMemoryBetweenProcesses) {
  const bool shares = GetParam() != std::string("tcp");
  EXPECT_EQ(listener_.connection(0)->can_share(), shares);
  if (shares) {
    EXPECT_EQ(child_receiver_->wait_shared(1).at(0).memory->size(), 100u);
  }
}

TEST_P(PeerOver, ThatIsKilledIsNoticed) {
  child_.signal(SIGKILL);
  const Error error = child_receiver_->wait_closed();
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.what(), HasSubstr(listener_.connection(0)->peer()));
  EXPECT_THAT(error.what(), HasSubstr("died"));
}

TEST_P(PeerOver, ThatStopsIsNoticed) {
  child_.signal(SIGSTOP);
  const Error error = child_receiver_->wait_closed();
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.what(),
              HasSubstr(listener_.connection(0)->peer() + " has stopped: no heartbeat for 4.0 s"));
}

}  // namespace

}  // namespace paceline
