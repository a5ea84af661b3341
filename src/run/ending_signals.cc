#include "run/ending_signals.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "paceline/error.h"

namespace paceline {
namespace {

bool is_ignored(int signal) {
  struct sigaction action = {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  if (!is_ignored(SIGHUP)) sigaddset(&set, SIGHUP);
  return set;
}

// Replaces each output whose reader is gone by /dev/null, so that later prints do not fail. Returns
// true if it replaced one.
bool drop_output_without_reader() {
  bool any = false;
  for (const int output : {STDOUT_FILENO, STDERR_FILENO}) {
    pollfd state = {output, POLLOUT, 0};
    if (poll(&state, 1, 0) != 1 || (state.revents & POLLERR) == 0) continue;
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, output);
    close(nowhere);
    any = true;
  }
  return any;
}

// Handles SIGPIPE, which goes to the writing thread and not to the signalfd. Calls only functions
// that a signal handler may call.
void on_broken_pipe(int /*signal*/, siginfo_t* info, void* /*context*/) {
  const int error = errno;
  const bool from_outside = info->si_code == SI_USER && info->si_pid != getpid();
  if (drop_output_without_reader() || from_outside) kill(getpid(), SIGTERM);
  errno = error;
}

}  // namespace

EndingSignals::EndingSignals() : set_(ending_signals()) {
  pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  fd_ = signalfd(-1, &set_, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd_ < 0) {
    throw Error(ErrorCode::kInternal, std::string("signalfd: ") + std::strerror(errno));
  }
  struct sigaction action = {};
  action.sa_sigaction = on_broken_pipe;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGPIPE, nullptr, &broken_pipe_before_);
  if (broken_pipe_before_.sa_handler != SIG_IGN) sigaction(SIGPIPE, &action, nullptr);
}

EndingSignals::~EndingSignals() {
  sigaction(SIGPIPE, &broken_pipe_before_, nullptr);
  close(fd_);
  pthread_sigmask(SIG_UNBLOCK, &set_, nullptr);
}

void EndingSignals::drain() const {
  signalfd_siginfo taken;
  while (read(fd_, &taken, sizeof taken) > 0) {
  }
}

}  // namespace paceline
