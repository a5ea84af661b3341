// Tests that a peer which is killed, stopped or cut off is noticed and named in every phase of a
// job, and that saved checkpoints stay whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <csignal>
#include <memory>
#include <optional>
#include <ostream>
#include <regex>

#include "launch/lab/lab.h"
#include "launch/lab/lab_options.h"
#include "paceline/error.h"
#include "tests/held_saves.h"
#include "tests/process.h"

namespace paceline::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

/// A phase that the tasks reach, and the output that shows that they have reached it.
struct Phase {
  std::string name;
  Words worker;         // the program, without its task
  std::string reached;  // what a worker says
  bool second_ps;       // in the spec, and never started
  bool go_on;           // the others go on training without a lost worker
  // True: a save is held open in this phase, by the chief if the chief is the victim, else by the
  // ps.
  bool saves = false;
};

const Words kTinyMlp =
    paceline_words({"train", "mlp", "--hidden", "32", "--batch", "8", "--threads", "1"});

Words phase_task(const std::string& phase) { return {PACELINE_PHASE_TASK, phase}; }

const Phase kPhases[] = {
    {"joining", kTinyMlp, "waiting for ps:1", true, false},
    {"initialising", phase_task("initialising"), "in phase initialising", false, false},
    {"training", kTinyMlp, "Step: ", false, true},
    {"saving", kTinyMlp, "Step: ", false, true, true},
    {"leaving", phase_task("leaving"), "in phase leaving", false, false},
};

enum class Fault { kKilled, kStopped, kCut };
struct Case {
  const Phase* phase;
  Fault fault;
  std::string victim;  // "ps", "worker" (worker:1) or "chief"
};

std::string text_of(const Case& fault) {
  constexpr const char* kWords[] = {"killed", "stopped", "cut"};
  return fmt::format("{}_{}_{}", fault.phase->name, fault.victim, kWords[int(fault.fault)]);
}
void PrintTo(const Case& fault, std::ostream* out) { *out << text_of(fault); }

class FaultTest : public ::testing::TestWithParam<Case> {
 protected:
  /// The time within which the test must see the loss, on a busy machine. It includes the 5 s in
  /// which a loss is noticed, and the `join_timeout` for which the other worker, and the chief when
  /// it saves, wait for a lost ps.
  static constexpr seconds kNoticed{60};
  /// Returns the join timeout in seconds. If a ps never starts, the loss must be noticed before the
  /// wait for that ps ends.
  const char* join_timeout() const { return GetParam().phase->second_ps ? "25" : "12"; }

  void SetUp() override {
    const Case& test = GetParam();
    if (test.fault == Fault::kCut) {
      try {
        hosts_.emplace(2, LabLinks{.gbps = 10});
      } catch (const Error& error) {
        GTEST_SKIP() << error.what();
      }
    }
    const std::string ps = address("ps"),
                      second = test.phase->second_ps ? "," + address("ps:1") : "";
    spec_ = fmt::format("ps={}{};worker={},{}", ps, second, address("chief"), address("worker"));
    ps_ = start("ps", kTinyMlp, "ps:0");
    ASSERT_TRUE(ps_->wait_for("listening on ", seconds(60))) << ps_->output();
    chief_ = start("chief", test.phase->worker, "worker:0");
    other_ = start("worker", test.phase->worker, "worker:1");
    for (auto* task : {chief_.get(), other_.get()}) {
      const bool reached = task->wait_for(test.phase->reached, seconds(60));
      if (!reached) ps_->wait_for("never", seconds(1));
      ASSERT_TRUE(reached) << task->output() << ps_->output();
    }
    ASSERT_TRUE(ps_->wait_for("worker:1 joined", seconds(60))) << ps_->output();
    if (test.phase->saves) hold_a_save();
  }

  std::string holder() const { return GetParam().victim == "chief" ? "chief" : "ps"; }
  Process& task(const std::string& name) const {
    return *(name == "ps" ? ps_ : name == "chief" ? chief_ : other_);
  }
  // Waits until one save was announced and the next one has begun.
  void hold_a_save() {
    ASSERT_TRUE(chief_->wait_for("Saving model to ", seconds(60))) << chief_->output();
    held_.hold();
    ASSERT_TRUE(task(holder()).wait_for(HeldSaves::kSaid, seconds(60))) << task(holder()).output();
  }
  bool cut_off(const std::string& task) const { return hosts_ && task == GetParam().victim; }
  std::string address(const std::string& task) {
    if (!hosts_) return free_address();
    return fmt::format("{}:{}", lab_address(cut_off(task) ? 1 : 0), ++port_);
  }
  std::unique_ptr<Process> start(const std::string& name, Words words, const std::string& task) {
    words.insert(words.end(), {"--cluster", spec_, "--task", task, "--reconnect-timeout", "2",
                               "--join-timeout", join_timeout()});
    if (GetParam().phase->saves) {
      words.insert(words.end(), {"--out", folder_.path("out"), "--save-every", "5"});
      if (name == holder()) words = held_.of(words);
    }
    if (!hosts_) return std::make_unique<Process>(words);
    words = join({words, with_key(folder_)});
    return std::make_unique<Process>(hosts_->on_host(cut_off(name) ? 1 : 0, words));
  }

  void strike() {
    begun_ = std::chrono::steady_clock::now();
    switch (GetParam().fault) {
      case Fault::kKilled:
        return task(GetParam().victim).signal(SIGKILL);
      case Fault::kStopped:
        return task(GetParam().victim).signal(SIGSTOP);
      case Fault::kCut:
        return hosts_->cut(1);
    }
  }
  void say_when(const char* who) const {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begun_;
    fmt::print("{}: {} noticed after {:.1f} s\n", text_of(GetParam()), who, spent.count());
  }
  void expect_ends_without_its_ps(Process& worker) const {
    EXPECT_EQ(worker.wait_exit(kNoticed), 1) << worker.output();
    say_when("a worker");
    EXPECT_THAT(worker.output(), HasSubstr("lost ps:0 at "));
    EXPECT_THAT(worker.output(), HasSubstr("last message "));
  }
  void strike_ps() {
    strike();
    for (auto* worker : {chief_.get(), other_.get()}) expect_ends_without_its_ps(*worker);
    if (!GetParam().phase->saves) return;
    EXPECT_THAT(chief_->output(), HasSubstr("; the newest is " + announced()));
    held_.let_go();
  }
  void strike_worker() {
    const bool chief = GetParam().victim == "chief";
    strike();
    EXPECT_TRUE(ps_->wait_for(chief ? "lost worker:0" : "lost worker:1", kNoticed))
        << ps_->output();
    say_when("the ps");
    held_.let_go();
    Process& survivor = chief ? *other_ : *chief_;
    if (GetParam().phase->go_on) {
      EXPECT_TRUE(survivor.wait_for_more("Step: ", kNoticed)) << survivor.output();
    }
    if (GetParam().phase->saves && !chief) {
      EXPECT_TRUE(chief_->wait_for_more("Saving model to ", kNoticed)) << chief_->output();
    }
    if (GetParam().fault == Fault::kCut) expect_ends_without_its_ps(task(GetParam().victim));
  }

  /// Returns the last checkpoint that the chief has announced.
  std::string announced() const {
    const std::string& output = chief_->output();
    const std::regex pattern("Saving model to (\\S*/step-\\d+) ");
    std::string last;
    for (std::sregex_iterator found(output.begin(), output.end(), pattern), none; found != none;
         ++found) {
      last = (*found)[1];
    }
    return last;
  }
  static int step_of(const std::string& checkpoint) {
    return std::stoi(checkpoint.substr(checkpoint.rfind('-') + 1));
  }
  /// Expects that training goes on from the checkpoint that was announced last, or from a newer one
  /// that was never announced.
  void expect_whole_checkpoint() {
    const std::string last = announced();
    for (auto* one : {&ps_, &chief_, &other_}) one->reset();
    Words words = kTinyMlp;
    words.insert(words.end(), {"--ps", "1", "--workers", "1", "--steps", "1", "--out",
                               folder_.path("out"), "--resume"});
    Process resumed(words);
    EXPECT_EQ(resumed.wait_exit(seconds(60)), 0) << resumed.output();
    std::smatch from;
    ASSERT_TRUE(std::regex_search(resumed.output(), from, std::regex("Goes on from step (\\d+)")))
        << resumed.output();
    EXPECT_GE(std::stoi(from[1]), step_of(last));
  }

  const TemporaryFolder folder_;
  HeldSaves held_{folder_.path("pipe"), holder() == "ps" ? "/shard-" : "/index.json"};
  std::optional<Lab> hosts_;  // if the victim is cut off, it is alone on host 1
  int port_ = 2222;
  std::string spec_;
  std::unique_ptr<Process> ps_, chief_, other_;
  std::chrono::steady_clock::time_point begun_;
};

TEST_P(FaultTest, IsNoticed) {
  GetParam().victim == "ps" ? strike_ps() : strike_worker();
  if (GetParam().phase->saves) expect_whole_checkpoint();
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Phase& phase : kPhases) {
    for (const Fault fault : {Fault::kKilled, Fault::kStopped, Fault::kCut}) {
      for (const char* victim : {"ps", "worker"}) cases.push_back({&phase, fault, victim});
      if (phase.saves) cases.push_back({&phase, fault, "chief"});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Phases, FaultTest, ::testing::ValuesIn(all_cases()),
                         [](const auto& info) { return text_of(info.param); });

}  // namespace
}  // namespace paceline::testing
