// A peer that is killed, stopped or cut off is noticed in every phase of a job, and named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <csignal>
#include <memory>
#include <optional>
#include <ostream>

#include "tests/namespaces.h"
#include "tests/process.h"

namespace paceline::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

/// How far the tasks go, and how to see that they are there.
struct Phase {
  std::string name;
  Words worker;         // the program, without its task
  Words flags;          // of every task
  bool second_ps;       // in the spec, and never started
  std::string reached;  // what a worker says
  bool go_on;           // the others train on without a lost worker
};

const Words kMlp = paceline_words(
    {"train", "mlp", "--hidden", "32", "--batch", "8", "--threads", "1", "--join-timeout", "60"});

Words phase_task(const std::string& phase) { return {PACELINE_PHASE_TASK, phase}; }

const Phase kPhases[] = {
    {"joining", kMlp, {}, true, "waiting for ps:1", false},
    {"initialising", phase_task("initialising"), {}, false, "in phase initialising", false},
    {"training", kMlp, {}, false, "Step: ", true},
    {"leaving", phase_task("leaving"), {}, false, "in phase leaving", false},
};

enum class Fault { kKilled, kStopped, kCut };
struct Case {
  const Phase* phase;
  Fault fault;
  std::string victim;
};

std::string text_of(const Case& fault) {
  constexpr const char* kWords[] = {"killed", "stopped", "cut"};
  return fmt::format("{}_{}_{}", fault.phase->name, fault.victim, kWords[int(fault.fault)]);
}
void PrintTo(const Case& fault, std::ostream* out) { *out << text_of(fault); }

class FaultTest : public ::testing::TestWithParam<Case> {
 protected:
  /// Beyond the 5 s in which a loss is noticed: for starting and ending on a busy machine.
  static constexpr seconds kNoticed{30};

  void SetUp() override {
    const Case& test = GetParam();
    if (test.fault == Fault::kCut) {
      hosts_.emplace();
      if (!hosts_->made()) GTEST_SKIP() << "no network namespaces can be made here (root? ip?)";
    }
    const std::string ps = address("ps"),
                      second = test.phase->second_ps ? "," + address("ps:1") : "";
    spec_ = fmt::format("ps={}{};worker={},{}", ps, second, address("worker:0"), address("worker"));
    Words server = kMlp;
    server.insert(server.end(), {"--cluster", spec_, "--task", "ps:0"});
    ps_ = start("ps", server);
    chief_ = start("worker:0", worker("worker:0"));
    other_ = start("worker", worker("worker:1"));
    for (auto* task : {chief_.get(), other_.get()}) {
      ASSERT_TRUE(task->wait_for(test.phase->reached, seconds(60))) << task->output();
    }
    ASSERT_TRUE(ps_->wait_for("worker:1 joined", seconds(60))) << ps_->output();
  }

  Words worker(const std::string& task) const {
    Words words = GetParam().phase->worker;
    words.insert(words.end(), {"--cluster", spec_, "--task", task});
    return words;
  }
  bool cut_off(const std::string& task) const { return hosts_ && task == GetParam().victim; }
  std::string address(const std::string& task) {
    if (!hosts_) return free_address();
    return fmt::format("10.231.78.{}:{}", cut_off(task) ? 2 : 1, ++port_);
  }
  std::unique_ptr<Process> start(const std::string& task, const Words& words) const {
    if (!hosts_) return std::make_unique<Process>(words);
    return std::make_unique<Process>(cut_off(task) ? hosts_->in_b(words) : hosts_->in_a(words));
  }

  void strike(Process& victim) const {
    switch (GetParam().fault) {
      case Fault::kKilled:
        return victim.signal(SIGKILL);
      case Fault::kStopped:
        return victim.signal(SIGSTOP);
      case Fault::kCut:
        return hosts_->cut();
    }
  }

  std::optional<Namespaces> hosts_;
  int port_ = 2222;
  std::string spec_;
  std::unique_ptr<Process> ps_, chief_, other_;
};

TEST_P(FaultTest, IsNoticed) {
  const Case& test = GetParam();
  const auto begun = std::chrono::steady_clock::now();
  const auto say_when = [&](const char* who) {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begun;
    fmt::print("{}: {} noticed after {:.1f} s\n", text_of(test), who, spent.count());
  };
  if (test.victim == "ps") {
    strike(*ps_);
    for (auto* worker : {chief_.get(), other_.get()}) {
      EXPECT_EQ(worker->wait_exit(kNoticed), 1) << worker->output();
      say_when("a worker");
      EXPECT_THAT(worker->output(), HasSubstr("lost ps:0 at "));
      EXPECT_THAT(worker->output(), HasSubstr("last message "));
    }
    return;
  }
  strike(*other_);
  EXPECT_TRUE(ps_->wait_for("lost worker:1", kNoticed)) << ps_->output();
  say_when("the ps");
  if (test.phase->go_on) {
    EXPECT_TRUE(chief_->wait_for_more("Step: ", kNoticed)) << chief_->output();
  }
  if (test.fault == Fault::kCut) {
    EXPECT_EQ(other_->wait_exit(kNoticed), 1) << other_->output();
    EXPECT_THAT(other_->output(), HasSubstr("lost ps:0 at "));
  }
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Phase& phase : kPhases) {
    for (const Fault fault : {Fault::kKilled, Fault::kStopped, Fault::kCut}) {
      for (const char* victim : {"ps", "worker"}) cases.push_back({&phase, fault, victim});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Phases, FaultTest, ::testing::ValuesIn(all_cases()),
                         [](const auto& info) { return text_of(info.param); });

}  // namespace
}  // namespace paceline::testing
