// For tests: a peer in a process of its own, which can be stopped and killed.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace paceline {

/// Runs this test program again, as another process that connects here and waits.
class ChildPeer {
 public:
  ChildPeer(const std::string& kind, const std::string& address) {
    std::string address_variable = "PACELINE_TEST_CONNECT=" + address;
    std::string kind_variable = "PACELINE_TEST_LINK=" + kind;
    std::vector<std::string> words = {"/proc/self/exe", "--gtest_filter=*IsAPeerInAProcessOfItsOwn",
                                      "--gtest_also_run_disabled_tests", "--gtest_brief=1"};
    std::vector<char*> arguments, environment = {address_variable.data(), kind_variable.data()};
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    for (char** one = ::environ; *one != nullptr; ++one) environment.push_back(*one);
    environment.push_back(nullptr);
    EXPECT_EQ(::posix_spawn(&pid_, "/proc/self/exe", nullptr, nullptr, arguments.data(),
                            environment.data()),
              0);
  }
  ~ChildPeer() {
    signal(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  void signal(int number) { ::kill(pid_, number); }

 private:
  pid_t pid_ = 0;
};

}  // namespace paceline
