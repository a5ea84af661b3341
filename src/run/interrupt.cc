#include "run/interrupt.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "paceline/error.h"

namespace paceline {

namespace {

constexpr Duration kHeededWithin = std::chrono::seconds(10);

int checked(int fd, const char* what) {
  if (fd < 0) throw Error(ErrorCode::kInternal, std::string(what) + ": " + std::strerror(errno));
  return fd;
}

int milliseconds_of(Duration duration) {
  return int(std::chrono::ceil<std::chrono::milliseconds>(duration).count());
}

void raise_event(int fd) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(fd, &one, sizeof one);
}

// Waits until a descriptor is readable or the time is over. Returns the descriptor; −1 if none is
// readable.
int wait_for(std::initializer_list<int> fds, int timeout_ms) {
  std::vector<pollfd> all;
  for (const int fd : fds) all.push_back({fd, POLLIN, 0});
  while (poll(all.data(), all.size(), timeout_ms) < 0 && errno == EINTR) {
  }
  for (const pollfd& one : all) {
    if ((one.revents & POLLIN) != 0) return one.fd;
  }
  return -1;
}

}  // namespace

Interrupt::Interrupt(int nobody_left) : nobody_left_(nobody_left) {
  asked_ = checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd");
  takes_time_ = checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd");
  ended_ = checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd");
  thread_ = std::thread([this] { watch(); });
}

Interrupt::~Interrupt() {
  raise_event(ended_);
  thread_.join();
  // Drops repeated signals of this request, which would end the process once they are no longer
  // blocked.
  if (interrupted()) signals_.drain();
  for (const int fd : {asked_, takes_time_, ended_}) close(fd);
}

void Interrupt::watch() {
  signalfd_siginfo info;
  if (wait_for({ended_, signals_.fd()}, -1) == ended_) return;
  [[maybe_unused]] const ssize_t taken = read(signals_.fd(), &info, sizeof info);
  interrupted_.store(true, std::memory_order_relaxed);
  raise_event(asked_);

  if (wait_for({ended_}, milliseconds_of(kSameRequest)) == ended_) return;
  signals_.drain();
  int next = wait_for({ended_, signals_.fd(), takes_time_}, milliseconds_of(kHeededWithin));
  if (next == takes_time_) next = wait_for({ended_, signals_.fd()}, -1);
  if (next != ended_) _exit(kInterruptedStatus);
}

bool Interrupt::left_alone() const {
  pollfd left{nobody_left_, POLLIN, 0};  // poll passes over −1
  return poll(&left, 1, 0) == 1;
}

void Interrupt::take_time() const { raise_event(takes_time_); }

}  // namespace paceline
