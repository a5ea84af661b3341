// Tests of the counters that show what kept a process from working.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "trace/pressure_counters.h"
#include "trace/stop_watch.h"
#include "trace/use_meter.h"

namespace paceline {
namespace {

TEST(PressureCounters, BusyTicksAreThoseOfProcessesHere) {
  EXPECT_EQ(busy_ticks("cpu  10 1 5 200 7 2 3 4 0 0\ncpu0 1 1 1 1"), 10 + 1 + 5 + 2 + 3);
  EXPECT_EQ(busy_ticks("nothing"), std::nullopt);
  EXPECT_EQ(busy_ticks(""), std::nullopt);
}

TEST(PressureCounters, StallsAreInMicroseconds) {
  EXPECT_EQ(stalled_seconds("some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\nfull …"), 2.5);
  EXPECT_EQ(stalled_seconds(""), std::nullopt);
}

TEST(StopWatch, WaitingForACoreIsNoStop) {
  EXPECT_DOUBLE_EQ(stopped_seconds(0.2, 2.25, 0.05), 2);
  EXPECT_EQ(stopped_seconds(0.2, 2.25, 2), 0) << "it was ready to run";
  EXPECT_EQ(stopped_seconds(0.2, 0.4, 0), 0) << "too little to tell";
}

// A process whose only work is to watch itself is stopped by its parent.
TEST(StopWatch, NoticesThatItsProcessWasStopped) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const StopWatch watch;
    for (int i = 0; i < 600 && watch.stops().longest == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    _exit(watch.stops().longest > 0 && watch.stops().seconds >= watch.stops().longest ? 0 : 1);
  }
  // The test stops the child again and again until the child has noticed a stop.
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    kill(child, SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(1000));
    kill(child, SIGCONT);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(UseMeter, TellsThePressure) {
  UseMeter meter;
  meter.start();
  volatile double sum = 0;
  while (meter.measure()->core_seconds <= 0) {
    for (int i = 0; i < 100000; ++i) sum = sum + i;
  }
  const Pressure pressure = meter.measure()->pressure;
  EXPECT_GE(pressure.stops.seconds, pressure.stops.longest);
  if (pressure.queued) {
    EXPECT_GE(*pressure.queued, 0);
    EXPECT_LE(*pressure.queued, 1);
  }
  EXPECT_GE(pressure.machine_cores.value_or(0), 0);
}

}  // namespace
}  // namespace paceline
