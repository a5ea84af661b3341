#include "bench/peer_process.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <utility>

#include "paceline/error.h"

namespace paceline::bench {

PeerProcess::PeerProcess(const std::function<void()>& serve, const Pinned* near) : pid_(::fork()) {
  if (pid_ < 0) throw Error(ErrorCode::kUnavailable, "[bench] no process for a far end");
  if (pid_ > 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (near != nullptr) near->leave();
  try {
    serve();
  } catch (const std::exception&) {
    ::_exit(1);  // so that check() reports the end
  }
  ::_exit(0);
}

PeerProcess::~PeerProcess() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

/// Stops the process and waits until it has stopped. Does nothing if it is stopped already: a
/// second wait would never end, since the system reports only once that a process has stopped.
void PeerProcess::pause() {
  if (std::exchange(paused_, true)) return;
  ::kill(pid_, SIGSTOP);
  ::waitpid(pid_, nullptr, WUNTRACED);
}

void PeerProcess::resume() {
  paused_ = false;
  ::kill(pid_, SIGCONT);
}

void PeerProcess::check() const {
  siginfo_t ended{};
  const int asked = ::waitid(P_PID, id_t(pid_), &ended, WEXITED | WNOHANG | WNOWAIT);
  if (asked == 0 && ended.si_pid == 0) return;
  throw Error(ErrorCode::kUnavailable, "[bench] the far end of a channel has ended");
}

}  // namespace paceline::bench
