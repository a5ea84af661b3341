#include "run/interrupt.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "run/ending_signals.h"

namespace paceline {
namespace {

bool readable(int fd, int timeout_ms) {
  pollfd one{fd, POLLIN, 0};
  return poll(&one, 1, timeout_ms) == 1;
}

TEST(Interrupt, FirstSignalAsks) {
  Interrupt interrupt;
  EXPECT_FALSE(interrupt.interrupted());
  EXPECT_FALSE(interrupt.left_alone());
  EXPECT_FALSE(readable(interrupt.fd(), 0));
  kill(getpid(), SIGTERM);
  EXPECT_TRUE(readable(interrupt.fd(), 10'000));
  EXPECT_TRUE(interrupt.interrupted());
}

TEST(Interrupt, TellsWhenNobodyIsLeft) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Interrupt interrupt(ends[0]);
  EXPECT_FALSE(interrupt.left_alone());
  close(ends[1]);
  EXPECT_TRUE(interrupt.left_alone());
  EXPECT_FALSE(interrupt.interrupted());
  close(ends[0]);
}

TEST(Interrupt, ATerminalThatIsClosedAsks) {
  Interrupt interrupt;
  kill(getpid(), SIGHUP);
  EXPECT_TRUE(readable(interrupt.fd(), 10'000));
}

TEST(Interrupt, UnderNohupAClosedTerminalIsNoRequest) {
  const auto before = signal(SIGHUP, SIG_IGN);
  {
    Interrupt interrupt;
    kill(getpid(), SIGHUP);
    kill(getpid(), SIGHUP);
    EXPECT_FALSE(interrupt.interrupted());
    kill(getpid(), SIGTERM);
    EXPECT_TRUE(readable(interrupt.fd(), 10'000));
  }
  signal(SIGHUP, before);
}

TEST(Interrupt, AReaderOfTheOutputThatLeavesAsksAndWhatFollowsIsDropped) {
  EXPECT_EXIT(
      {
        Interrupt interrupt;
        int ends[2];
        if (pipe(ends) != 0) _exit(1);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        if (write(STDOUT_FILENO, "x", 1) == 1) _exit(2);
        const bool asked = readable(interrupt.fd(), 10'000);
        _exit(asked && write(STDOUT_FILENO, "x", 1) == 1 ? 0 : 3);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Interrupt, AnotherPipeThatBreaksIsNoRequest) {
  Interrupt interrupt;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  EXPECT_EQ(write(ends[1], "x", 1), -1);
  close(ends[1]);
  EXPECT_FALSE(interrupt.interrupted());
}

TEST(Interrupt, SecondSignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        Interrupt interrupt;
        kill(getpid(), SIGINT);
        readable(interrupt.fd(), 10'000);
        interrupt.take_time();  // otherwise the first signal would end the process after 10 s
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
