#include "cluster/interrupt.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "cluster/ending_signals.h"

namespace paceline {
namespace {

bool readable(int fd, int timeout_ms) {
  pollfd one{fd, POLLIN, 0};
  return poll(&one, 1, timeout_ms) == 1;
}

TEST(Interrupt, FirstSignalAsks) {
  Interrupt interrupt;
  EXPECT_FALSE(interrupt.interrupted());
  EXPECT_FALSE(readable(interrupt.fd(), 0));
  kill(getpid(), SIGTERM);
  EXPECT_TRUE(readable(interrupt.fd(), 10'000));
  EXPECT_TRUE(interrupt.interrupted());
}

TEST(Interrupt, SecondSignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        Interrupt interrupt;
        kill(getpid(), SIGINT);
        readable(interrupt.fd(), 10'000);
        interrupt.take_time();  // or the first would end it, too, in the end
        while (true) {
          kill(getpid(), SIGINT);
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
      },
      testing::ExitedWithCode(130), "");
}

TEST(Interrupt, SignalsOfOneMomentAreOneRequest) {
  EXPECT_EXIT(
      {
        Interrupt interrupt;
        kill(getpid(), SIGINT);
        kill(getpid(), SIGTERM);
        interrupt.take_time();
        std::this_thread::sleep_for(3 * kSameRequest);
        _exit(interrupt.interrupted() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Interrupt, WhenItIsGoneSignalsEndTheProcessAsEver) {
  EXPECT_EXIT(
      {
        { Interrupt interrupt; }
        kill(getpid(), SIGTERM);
        pause();
      },
      testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace paceline
