#include "cluster/interrupt.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

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
        kill(getpid(), SIGINT);
        pause();
      },
      testing::ExitedWithCode(130), "");
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
