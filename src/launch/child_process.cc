#include "launch/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "paceline/error.h"

namespace paceline {

namespace {

constexpr int kCannotExecute = 127;
constexpr int kMostChunks = 64;

[[noreturn]] void fail(const TaskCommand& command, const char* what) {
  throw Error(ErrorCode::kUnavailable, fmt::format("{} cannot be started: {}: {}", command.name,
                                                   what, std::strerror(errno)));
}

struct Pipe {
  int read_end, write_end;
};

Pipe make_pipe(const TaskCommand& command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail(command, "pipe");
  return {ends[0], ends[1]};
}

// Returns the read end of a pipe that already holds the key, so that nobody needs to write to it
// later.
FileDescriptor pipe_with(const SecretKey& key, const TaskCommand& command) {
  const Pipe ends = make_pipe(command);
  FileDescriptor read_end(ends.read_end);
  const FileDescriptor write_end(ends.write_end);
  std::string text = key.text();
  const ssize_t written = write(write_end.get(), text.data(), text.size());
  explicit_bzero(text.data(), text.size());
  if (written != ssize_t(text.size())) fail(command, "a pipe takes no key");
  return read_end;
}

// Runs in the child between fork and exec, where only some calls are safe. `key` may be −1.
[[noreturn]] void become(const char* program, char* const* arguments, char* const* environment,
                         int in, int out, int err, int key, int parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kCannotExecute);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  if (key >= 0) fcntl(key, F_SETFD, 0);  // exec closes other tasks' keys
  execvpe(program, arguments, environment);
  const std::string_view why = strerrordesc_np(errno);
  for (const std::string_view part :
       {std::string_view("cannot execute "), std::string_view(program), std::string_view(": "), why,
        std::string_view("\n")}) {
    if (write(STDERR_FILENO, part.data(), part.size()) < 0) break;
  }
  _exit(kCannotExecute);
}

/// Returns the environment of this process, in which `more` replaces variables of the same names.
std::vector<std::string> environment_with(const std::vector<std::string>& more) {
  std::vector<std::string> all = more;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view text = *one;
    const std::string_view name = text.substr(0, text.find('=') + 1);
    if (std::ranges::none_of(more, [&](const auto& other) { return other.starts_with(name); }))
      all.emplace_back(text);
  }
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

std::string ExitStatus::str() const {
  if (lost) return why;
  if (signal != 0) return fmt::format("killed by signal {} ({}){}", signal, strsignal(signal), why);
  return fmt::format("exit status {}", code);
}

ChildSignals::ChildSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  pthread_sigmask(SIG_BLOCK, &set, &before_);
  fd_ = FileDescriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (fd_.get() >= 0) return;
  throw Error(ErrorCode::kUnavailable, fmt::format("signalfd: {}", std::strerror(errno)));
}

ChildSignals::~ChildSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

void ChildSignals::drain() const {
  signalfd_siginfo taken;
  while (read(fd_.get(), &taken, sizeof taken) > 0) {
  }
}

ChildProcess::ChildProcess(const TaskCommand& command, TaskOutput out, TaskOutput err)
    : RunningTask(command), out_{-1, std::move(out)}, err_{-1, std::move(err)} {
  std::vector<std::string> texts = {command.program};
  texts.insert(texts.end(), command.arguments.begin(), command.arguments.end());
  const bool by_variable = !command.task_variable.empty();
  std::vector<std::string> variables = command.variables;
  if (by_variable) variables.push_back("PACELINE_TASK=" + command.task_variable);
  FileDescriptor key;
  if (command.key) {
    key = pipe_with(*command.key, command);
    const std::string file = fmt::format("/dev/fd/{}", key.get());
    if (by_variable) {
      variables.push_back("PACELINE_KEY_FILE=" + file);
    } else {
      texts.insert(texts.end(), {"--key-file", file});
    }
  }
  variables = environment_with(variables);
  const std::vector<char*> arguments = pointers_to(texts);
  const std::vector<char*> environment = pointers_to(variables);
  const Pipe out_pipe = make_pipe(command);
  const Pipe err_pipe = make_pipe(command);
  const Pipe in_pipe = make_pipe(command);
  const FileDescriptor in(in_pipe.read_end);
  in_ = FileDescriptor(in_pipe.write_end);
  out_.fd = out_pipe.read_end;
  err_.fd = err_pipe.read_end;
  for (const int fd : {out_.fd, err_.fd}) fcntl(fd, F_SETFL, O_NONBLOCK);
  const int parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    become(command.program.c_str(), arguments.data(), environment.data(), in.get(),
           out_pipe.write_end, err_pipe.write_end, key.get(), parent);
  }
  close(out_pipe.write_end);
  close(err_pipe.write_end);
  if (pid_ < 0) fail(command, "fork");
  setpgid(pid_, pid_);  // the child calls it, too: the first call counts
  exit_fd_ = int(syscall(SYS_pidfd_open, pid_, 0));
  if (exit_fd_ < 0) fail(command, "pidfd_open");
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0 && running()) {
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  for (const int fd : {exit_fd_, out_.fd, err_.fd}) {
    if (fd >= 0) close(fd);
  }
}

// Signals the whole group, since a command may have started the program that trains as its own
// child.
void ChildProcess::send_signal(int signal) {
  if (running()) kill(-pid_, signal);
}

void ChildProcess::watch(std::vector<pollfd>& watched) const {
  watched.push_back({exit_fd_, POLLIN, 0});
  watch_outputs(watched);
}

void ChildProcess::watch_outputs(std::vector<pollfd>& watched) const {
  for (const int fd : {out_.fd, err_.fd}) watched.push_back({fd, POLLIN, 0});
}

bool ChildProcess::has_ended() const {
  pollfd exit{exit_fd_, POLLIN, 0};
  return running() && poll(&exit, 1, 0) == 1;
}

void ChildProcess::note_stops() {
  siginfo_t info{};
  while (running() && waitid(P_PID, id_t(pid_), &info, WSTOPPED | WCONTINUED | WNOHANG) == 0 &&
         info.si_pid != 0) {
    stopped_ = info.si_code == CLD_STOPPED;
    info = {};
  }
}

void ChildProcess::forward(Stream& stream) {
  std::array<char, 16384> chunk;
  // A task that writes without end must not keep the other tasks waiting.
  for (int turn = 0; stream.fd >= 0 && turn < kMostChunks; ++turn) {
    const ssize_t got = read(stream.fd, chunk.data(), chunk.size());
    if (got > 0) {
      stream.lines.add({chunk.data(), std::size_t(got)});
    } else if (got < 0 && errno == EAGAIN) {
      return;
    } else if (got == 0 || errno != EINTR) {
      end(stream);
    }
  }
}

void ChildProcess::end(Stream& stream) {
  if (stream.fd >= 0) stream.lines.end();
  if (stream.fd >= 0) close(std::exchange(stream.fd, -1));
}

void ChildProcess::forward_output() {
  forward(out_);
  forward(err_);
}

void ChildProcess::reap() {
  siginfo_t info{};
  while (waitid(P_PID, id_t(pid_), &info, WEXITED) != 0 && errno == EINTR) {
  }
  const bool exited = info.si_code == CLD_EXITED;
  status_ = ExitStatus{exited ? info.si_status : 0, exited ? 0 : info.si_status};
  forward_output();
  end(out_);
  end(err_);
}

}  // namespace paceline
