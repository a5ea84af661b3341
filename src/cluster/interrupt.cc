#include "cluster/interrupt.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>

#include "cluster/ending_signals.h"
#include "paceline/error.h"

namespace paceline {

namespace {

constexpr auto kHeededWithin = std::chrono::seconds(10);

int checked(int fd, const char* what) {
  if (fd < 0) throw Error(ErrorCode::kInternal, std::string(what) + ": " + std::strerror(errno));
  return fd;
}

void raise_event(int fd) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(fd, &one, sizeof one);
}

// Until one of the two is readable or the time is over; true when it is the first.
bool wait_for(int fd, int other, int timeout_ms) {
  pollfd both[] = {{fd, POLLIN, 0}, {other, POLLIN, 0}};
  while (poll(both, 2, timeout_ms) < 0 && errno == EINTR) {
  }
  return (both[0].revents & POLLIN) != 0;
}

}  // namespace

Interrupt::Interrupt() {
  // Blocked here, before other threads exist, so that every thread inherits it and the signals
  // reach nobody but the descriptor.
  const sigset_t set = ending_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = checked(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd");
  asked_ = checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd");
  ended_ = checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd");
  thread_ = std::thread([this] { watch(); });
}

Interrupt::~Interrupt() {
  raise_event(ended_);
  thread_.join();
  for (const int fd : {signals_, asked_, ended_}) close(fd);
  const sigset_t set = ending_signals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void Interrupt::watch() {
  signalfd_siginfo info;
  if (!wait_for(signals_, ended_, -1)) return;
  [[maybe_unused]] const ssize_t taken = read(signals_, &info, sizeof info);
  interrupted_.store(true, std::memory_order_relaxed);
  raise_event(asked_);

  const int patience_ms = int(std::chrono::milliseconds(kHeededWithin).count());
  if (!wait_for(ended_, signals_, patience_ms)) _exit(kInterruptedStatus);
}

}  // namespace paceline
