// Tests that an impossible value is refused with the flag's name and the allowed values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <ostream>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Refused {
  std::vector<std::string> words;
  std::vector<std::string> says;
};

void PrintTo(const Refused& refused, std::ostream* out) {
  for (const std::string& word : refused.words) *out << word << ' ';
}

class Usage : public ::testing::TestWithParam<Refused> {};

TEST_P(Usage, IsRefusedWithStatusTwo) {
  const Finished run = run_paceline(GetParam().words, std::chrono::seconds(20));
  EXPECT_EQ(run.status, 2) << run.output;
  for (const std::string& text : GetParam().says) EXPECT_THAT(run.output, HasSubstr(text));
}

INSTANTIATE_TEST_SUITE_P(
    Flags, Usage,
    ::testing::Values(
        Refused{{"train", "mpl"}, {"mlp"}}, Refused{{"trian", "mlp"}, {"train"}},
        Refused{{"train", "mlp", "--stesp", "3"}, {"--stesp", "--steps"}},
        Refused{{"train", "mlp", "--steps", "x"}, {"--steps"}},
        Refused{{"train", "mlp", "--steps", "-1"}, {"--steps"}},
        Refused{{"train", "mlp", "--epochs", "3"}, {"--epochs", "mlp", "no end", "--steps"}},
        Refused{{"train", "fetch", "--epochs", "3"}, {"--epochs", "fetch", "no end", "--steps"}},
        Refused{{"train", "mlp", "--data", "x"}, {"--data", "mlp", "ptb"}},
        Refused{{"train", "fetch", "--set", "constant=2"}, {"--set constant=2", "must be 0 or 1"}},
        Refused{{"train", "fetch", "--steps", "5", "--seconds", "1"}, {"--steps", "--seconds"}},
        Refused{{"train", "mlp", "--threads", "-2"}, {"--threads"}},
        Refused{{"train", "mlp", "--workers", "2"}, {"--workers", "--ps"}},
        Refused{{"train", "mlp", "--link", "smoke"}, {"--link", "tcp"}},
        Refused{{"train", "mlp", "--device", "gpu"},
                {"--device gpu", "cuda:N", "--device sim", "paceline predict"}},
        Refused{{"train", "mlp", "--strategy", "magic"}, {"--strategy", "async"}},
        Refused{{"train", "mlp", "--set", "learning_rat=1"}, {"learning_rate"}},
        Refused{{"train", "ptb", "--size", "huge"}, {"--size", "small"}},
        Refused{{"train", "ptb"}, {"--data", "paceline data corpus"}},
        Refused{{"train", "mlp", "--cluster", "ps=a:1;worker=a:1", "--task", "ps:0"}, {"a:1"}},
        Refused{{"train", "mlp", "--cluster", "ps=a:1;worker=b:1", "--task", "worker:7"},
                {"worker:7"}},
        Refused{{"compare"}, {"REPORT is missing", "reports of the runs", "compare REPORT"}},
        Refused{{"inspect"}, {"CHECKPOINT is missing", "paceline inspect CHECKPOINT"}},
        Refused{{"completion", "csh"}, {"csh", "bash, zsh, fish"}},
        Refused{{"data", "corpus", "--out", "/nowhere", "--words", "100"}, {"--words"}},
        Refused{{"compare", ""}, {"REPORT '': must be PATH…, not empty"}},
        Refused{{"predict", "/bin/sh"},
                {"'/bin/sh' is no model, but a file: a program of your own is asked itself, as in "
                 "/bin/sh --predict"}},
        Refused{{"train", "mlp", "--plot", "a.svg"}, {"--plot needs --predict"}},
        Refused{{"train", "mlp", "--predict", "--plot", "a.pdf"}, {"must end with .svg or .png"}},
        Refused{{"roof", "--out", ""}, {"--out '': must be FILE, not empty"}},
        Refused{{"server", "--bind", "here"},
                {"--bind: 'here' is no address: the port is missing"}},
        Refused{{"train", "mlp", "--set", "layers=1000000"}, {"from 0 to 100000"}},
        Refused{{"train", "fetch", "--set", "seconds=0"}, {"must be a number from 0.001 on"}}));

TEST(Mlp, PrintsItsSpeedAtMostOnceASecondUnlessAsked) {
  const std::vector<std::string> words = {"train", "mlp", "--set", "hidden=8", "--steps", "400"};
  const auto lines_of = [](const std::string& output) {
    int lines = 0;
    for (std::size_t at = 0; (at = output.find("steps/sec", at)) != output.npos; ++at) ++lines;
    return lines;
  };
  const auto begun = std::chrono::steady_clock::now();
  const Finished usual = run_paceline(words);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  EXPECT_EQ(usual.status, 0) << usual.output;
  EXPECT_LE(lines_of(usual.output), 1 + took.count());
  EXPECT_THAT(usual.output, HasSubstr(" steps/sec, loss ")) << "one line has both";
  std::vector<std::string> asked = words;
  asked.insert(asked.end(), {"--set", "print_every=10"});
  EXPECT_EQ(lines_of(run_paceline(asked).output), 40);
}

struct BadEnvironment {
  const char* tf_config;
  std::string says;
};

void PrintTo(const BadEnvironment& bad, std::ostream* out) { *out << bad.tf_config; }

class TfConfigOfTheEnvironment : public ::testing::TestWithParam<BadEnvironment> {
 protected:
  ~TfConfigOfTheEnvironment() override { unsetenv("TF_CONFIG"); }
};

TEST_P(TfConfigOfTheEnvironment, IsRefusedWithLineAndColumn) {
  setenv("TF_CONFIG", GetParam().tf_config, 1);
  const Finished run = run_paceline({"train", "mlp", "--steps", "1"}, std::chrono::seconds(20));
  EXPECT_EQ(run.status, 2) << run.output;
  EXPECT_THAT(run.output, HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    Bad, TfConfigOfTheEnvironment,
    ::testing::Values(
        BadEnvironment{"{\n  \"cluster\": {ps}}", "TF_CONFIG, line 2, column 15: no JSON: "},
        BadEnvironment{"{\"cluster\":{\"ps\":[\"a:1\"],\"worker\":[\"b:1\"]}}",
                       "add --task worker:0 (or --job-name and --task-index); --ps M --workers N "
                       "start all tasks on this machine (--cluster is from TF_CONFIG, line 1, "
                       "column 2)"},
        BadEnvironment{"{\"cluster\":{\"ps\":[\"a:1\"],\"worker\":[\"b:1\"]},\"task\":"
                       "{\"type\":\"worker\",\"index\":3}}",
                       "TF_CONFIG, line 1, column 44: task worker:3 is not in the cluster"},
        BadEnvironment{"{\"cluster\":{\"ps\":[\"a:1\"],\"worker\":[\"a:1\"]},\"task\":"
                       "{\"type\":\"ps\",\"index\":0}}",
                       "a:1 is the address of both ps:0 and worker:0"}));

TEST(Config, AFileOfFlagsTrainsAndItsMistakesHaveAPlace) {
  const TemporaryFolder folder;
  std::ofstream(folder.path("job.toml")) << "steps = 3\nbatch = 8\n[set]\nhidden = 16\n";
  const Finished good = run_paceline({"train", "mlp", "--config", folder.path("job.toml")});
  EXPECT_EQ(good.status, 0) << good.output;
  EXPECT_THAT(good.output, HasSubstr("3 global steps"));
  std::ofstream(folder.path("bad.json")) << "{\n  \"stesp\": 3\n}\n";
  const Finished bad = run_paceline({"train", "mlp", "--config", folder.path("bad.json")});
  EXPECT_EQ(bad.status, 2) << bad.output;
  EXPECT_THAT(bad.output, HasSubstr("bad.json, line 2, column 3: unknown key 'stesp'"));
  EXPECT_THAT(bad.output, HasSubstr("did you mean 'steps'?"));
}

TEST(Version, NamesWhatABugReportNeeds) {
  const Finished run = run_paceline({"version"});
  EXPECT_EQ(run.status, 0);
  for (const char* name : {"compiler", "oneDNN", "CPU", "devices", "links"})
    EXPECT_THAT(run.output, HasSubstr(name));
}

TEST(Help, TrainModelListsItsHyperParameters) {
  const Finished run = run_paceline({"train", "mlp", "--help"});
  EXPECT_EQ(run.status, 0);
  EXPECT_THAT(run.output, HasSubstr("learning_rate"));
  EXPECT_THAT(run.output, HasSubstr("--hidden"));
}

// The tasks have the variables that srun gives to tasks of one node.
TEST(Launched, TheTasksOfAStepOfSlurmFindEachOther) {
  for (const Words& more : {Words{}, Words{"--ps", "1"}}) {
    std::vector<std::unique_ptr<Process>> tasks;
    for (const std::string rank : {"0", "1", "2"}) {
      tasks.push_back(std::make_unique<Process>(
          join({{"env", "SLURM_JOB_ID=" + std::to_string(::getpid()), "SLURM_STEP_ID=0",
                 "SLURM_STEP_NUM_TASKS=3", "SLURM_STEP_NODELIST=localhost",
                 "SLURM_STEP_TASKS_PER_NODE=3", "SLURM_NODEID=0", "SLURM_PROCID=" + rank,
                 "SLURM_LOCALID=" + rank},
                paceline_words({"train", "mlp", "--hidden", "8", "--batch", "4", "--steps", "60",
                                "--threads", "1"}),
                more})));
    }
    for (const auto& task : tasks)
      EXPECT_EQ(task->wait_exit(std::chrono::seconds(100)), 0) << task->output();
    const std::string last = more.empty() ? "worker:2 of 0 ps and 3" : "worker:1 of 1 ps and 2";
    EXPECT_THAT(tasks[2]->output(),
                HasSubstr("Slurm (SLURM_STEP_NODELIST=localhost, SLURM_PROCID=2)"
                          " says who this process is: " +
                          last));
  }
}

TEST(Launched, OneOfSeveralProcessesTrainsAloneOnlyIfItIsMeant) {
  const Words small = {"train", "mlp", "--hidden", "8", "--batch", "4", "--steps", "3"};
  const auto under = [&](const Words& variables, const Words& more) {
    Process process(join({{"env"}, variables, paceline_words(join({small, more}))}));
    const int status = process.wait_exit(std::chrono::seconds(60));
    return Finished{status, process.output()};
  };
  const Words slurm = {"SLURM_STEP_NUM_TASKS=4", "SLURM_PROCID=2"};
  for (const Words& more : {Words{}, Words{"--ps", "1", "--workers", "2"}}) {
    const Finished refused = under(slurm, more);
    EXPECT_EQ(refused.status, 2) << refused.output;
    EXPECT_THAT(refused.output, AllOf(HasSubstr("SLURM_STEP_NUM_TASKS=4"), HasSubstr("--alone")));
  }
  EXPECT_EQ(under({"FLUX_JOB_SIZE=2", "FLUX_TASK_RANK=0"}, {"--ps", "0", "--workers", "2"}).status,
            2);
  EXPECT_EQ(under(slurm, {"--alone"}).status, 0);
  const Finished noted = under({"CUDA_VISIBLE_DEVICES=0"}, {});
  EXPECT_EQ(noted.status, 0);
  EXPECT_THAT(noted.output, HasSubstr("CUDA_VISIBLE_DEVICES=0: "));
}

}  // namespace
}  // namespace paceline::testing
