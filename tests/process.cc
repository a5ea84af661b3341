#include "tests/process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "net/tls/secret_key.h"

extern char** environ;

namespace paceline::testing {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<char*> argument_pointers(const std::vector<std::string>& arguments) {
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments)
    pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Process::Process(const std::vector<std::string>& arguments) {
  // The tests share measurements of this machine, separate from the user's own.
  const std::filesystem::path cache =
      std::filesystem::temp_directory_path() / "paceline-test-cache";
  setenv("XDG_CACHE_HOME", cache.c_str(), 0);
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  std::vector<char*> pointers = argument_pointers(arguments);
  const int failed = posix_spawnp(&pid_, pointers[0], &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  output_fd_ = ends[0];
  if (failed != 0) throw std::runtime_error("cannot start " + arguments.front());
}

Process::~Process() {
  if (!reaped_) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(output_fd_);
}

void Process::signal(int number) const {
  if (kill(pid_, number) != 0) throw std::runtime_error("the process to be signalled is gone");
}

Process::Read Process::read_some(Clock::time_point until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
  pollfd waiting{output_fd_, POLLIN, 0};
  if (left.count() <= 0 || poll(&waiting, 1, int(left.count())) <= 0) return Read::kLate;
  std::array<char, 4096> piece;
  const ssize_t count = read(output_fd_, piece.data(), piece.size());
  if (count <= 0) return Read::kEnd;
  output_.append(piece.data(), std::size_t(count));
  return Read::kMore;
}

bool Process::find(const std::string& text, std::size_t from, Clock::time_point until) {
  std::size_t at = output_.find(text, from);
  while (at == std::string::npos) {
    if (read_some(until) != Read::kMore) return false;
    at = output_.find(text, from);
  }
  found_ = at + text.size();
  return true;
}

bool Process::wait_for(const std::string& text, std::chrono::seconds within) {
  return find(text, 0, Clock::now() + within);
}

bool Process::wait_for_more(const std::string& text, std::chrono::seconds within) {
  const auto until = Clock::now() + within;
  pollfd waiting{output_fd_, POLLIN, 0};
  while (poll(&waiting, 1, 0) > 0) {
    if (read_some(until) != Read::kMore) return false;
  }
  return find(text, output_.size(), until);
}

bool Process::wait_for_next(const std::string& text, std::chrono::seconds within) {
  return find(text, found_, Clock::now() + within);
}

int Process::wait_exit(std::chrono::seconds within) {
  const auto until = Clock::now() + within;
  Read result = Read::kMore;
  while (result == Read::kMore) result = read_some(until);
  if (result == Read::kLate) return -1;
  int status = 0;
  waitpid(pid_, &status, 0);
  reaped_ = true;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::vector<std::string> paceline_words(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {PACELINE_COMMAND};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

Finished run_paceline(const std::vector<std::string>& arguments, std::chrono::seconds within) {
  Process process(paceline_words(arguments));
  const int status = process.wait_exit(within);
  return {status, process.output()};
}

void train_until_all_have_stepped(std::vector<std::string> arguments, int workers) {
  arguments.insert(arguments.end(), {"--steps", "1000000000"});
  Process run(paceline_words(arguments));
  for (int i = 0; i < workers; ++i) {
    const std::string steps = "worker:" + std::to_string(i) + " | Step: 10 ";
    ASSERT_TRUE(run.wait_for(steps, std::chrono::seconds(60))) << run.output();
  }
  run.signal(SIGINT);
  ASSERT_EQ(run.wait_exit(std::chrono::seconds(60)), 130) << run.output();
}

Words with_key(const TemporaryFolder& folder) {
  const std::string file = folder.path("job.key");
  if (!std::filesystem::exists(file)) SecretKey::make().write_new(file);
  return {"--key-file", file};
}

namespace {

// These ports lie below those that the system gives to programs which bind port 0.
constexpr int kFirstPort = 10000, kPorts = 20000;

/// Reserves a port against other test programs until this one ends.
bool claim(int port) {
  const std::string name = "paceline-test-port-" + std::to_string(port);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.sun_path + 1);  // abstract: no file
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto length = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), length) == 0) return true;
  close(fd);
  return false;
}

bool is_free(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(std::uint16_t(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool bound = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return bound;
}

}  // namespace

std::string free_address() {
  static std::atomic<int> next{getpid() * 16};
  for (int tries = 0; tries < kPorts; ++tries) {
    const int port = kFirstPort + next++ % kPorts;
    if (claim(port) && is_free(port)) return "127.0.0.1:" + std::to_string(port);
  }
  throw std::runtime_error("no free port of 127.0.0.1");
}

int connect_to(const std::string& address) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(std::uint16_t(std::stoi(address.substr(address.rfind(':') + 1))));
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0) return fd;
  close(fd);
  throw std::runtime_error("nobody listens at " + address);
}

Words join(std::initializer_list<Words> lists) {
  Words all;
  for (const Words& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace paceline::testing
