#include <gmock/gmock.h>

#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Bench, ListsItsCases) {
  const Finished run = run_paceline({"bench", "--list"});
  EXPECT_EQ(run.status, 0);
  for (const char* name :
       {"roof", "links", "fetch", "collectives", "rules", "kernels", "input", "executor", "step"}) {
    EXPECT_THAT(run.output, HasSubstr(std::string("  ") + name + " "));
  }
}

TEST(Bench, HelpTeachesByExample) {
  const Finished run = run_paceline({"bench", "--help"});
  EXPECT_EQ(run.status, 0);
  EXPECT_THAT(run.output, AllOf(HasSubstr("--json FILE"), HasSubstr("--repeat N"),
                                HasSubstr("paceline bench step mlp --ps 1 --workers 4")));
  const std::string step_help = run_paceline({"bench", "step", "mlp", "--help"}).output;
  EXPECT_THAT(step_help, AllOf(HasSubstr("paceline bench step mlp --ps 1"), HasSubstr("--seconds"),
                               HasSubstr("Hyper-parameters"), Not(HasSubstr("paceline train"))));
}

TEST(Bench, RefusesWhatThereIsNotAndNamesTheNearest) {
  const auto refused = [](const std::vector<std::string>& arguments, const std::string& why) {
    const Finished run = run_paceline(arguments);
    EXPECT_EQ(run.status, 2) << run.output;
    EXPECT_THAT(run.output, AllOf(HasSubstr(why), Not(HasSubstr("median of"))));
  };
  refused({"bench", "kernel"}, "unknown case 'kernel'; did you mean 'kernels'?");
  refused({"bench", "reports"}, "paceline-evidence reports");
  refused({"bench", "mlp"}, "unknown case 'mlp', which is a model: bench step mlp");
  for (const char* flag : {"--out", "--report", "--cluster"}) {
    refused({"bench", "step", "mlp", flag, "x"}, flag);
  }
  refused({"bench", "links", "step", "mpl"}, "unknown model 'mpl'; did you mean 'mlp'?");
  refused({"bench", "--repeats", "3"}, "did you mean '--repeat'?");
  refused({"bench", "roof", "--repeat", "0"}, "--repeat 0");
  refused({"bench", "step", "mlp", "--hiden", "3"}, "did you mean '--hidden'?");
  refused({"bench", "step", "mlp", "--device", "sim", "--sim-step-ms", "1"}, "--device sim");
  refused({"bench", "step", "mlp", "--constant"}, "--constant is not a flag of mlp");
  refused({"bench", "step", "mlp", "--epochs", "3"}, "--epochs has no meaning for mlp");
  refused({"bench", "step", "ptb", "--epochs", "1", "--steps", "9"}, "--epochs and --steps");
}

TEST(Bench, AFileThatCannotBeWrittenIsRefusedBeforeAnythingIsMeasured) {
  const Finished run = run_paceline({"bench", "roof", "--json", "/nowhere/figures.json"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.output, AllOf(HasSubstr("--json /nowhere/figures.json"),
                                HasSubstr("there is no folder /nowhere")));
}

nlohmann::json figures_in(const std::string& path) {
  return nlohmann::json::parse(std::ifstream(path))["figures"];
}

TEST(Bench, FiguresThatWereMeasuredBeforeAFailureStay) {
  const TemporaryFolder folder;
  const std::string path = folder.path("figures.json");
  // In a run of so few steps, none is timed.
  const Finished run = run_paceline({"bench", "executor", "step", "mlp", "--hidden", "16",
                                     "--steps", "5", "--repeat", "1", "--json", path});
  EXPECT_EQ(run.status, 1) << run.output;
  EXPECT_THAT(run.output, HasSubstr("made no timed step"));
  ASSERT_TRUE(std::filesystem::exists(path)) << run.output;
  const nlohmann::json figures = figures_in(path);
  ASSERT_FALSE(figures.empty());
  EXPECT_EQ(figures[0]["case"], "executor");
}

TEST(Bench, AFileThatCouldNotBeWrittenEndsItWithTheReason) {
  const TemporaryFolder folder;
  const std::string path = folder.path("figures.json");
  // A folder stands where the file is written before it is renamed.
  std::filesystem::create_directory(path + ".part");
  const Finished run = run_paceline({"bench", "executor", "--repeat", "1", "--json", path});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.output, HasSubstr("--json " + path + " cannot be written: Is a directory"));
}

nlohmann::json figures_of(std::vector<std::string> arguments) {
  const TemporaryFolder folder;
  arguments.insert(arguments.end(), {"--repeat", "2", "--json", folder.path("figures.json")});
  const Finished run = run_paceline(arguments);
  EXPECT_EQ(run.status, 0) << run.output;
#ifndef NDEBUG
  EXPECT_THAT(run.output, HasSubstr("this is a debug build"));
#endif
  return figures_in(folder.path("figures.json"));
}

const nlohmann::json* find(const nlohmann::json& figures, const std::string& name) {
  for (const auto& figure : figures) {
    if (figure["name"] == name) return &figure;
  }
  return nullptr;
}

TEST(Bench, StepPutsAWorkloadBesideItsBound) {
  const auto figures = figures_of({"bench", "step", "mlp", "--hidden", "16", "--batch", "4",
                                   "--steps", "40", "--threads", "1"});
  const nlohmann::json* speed = find(figures, "mlp, one process");
  ASSERT_NE(speed, nullptr);
  EXPECT_EQ((*speed)["unit"], "steps/s");
  EXPECT_GT((*speed)["value"]["median"], 0);
  EXPECT_EQ((*speed)["beside"]["what"], "bound");
  EXPECT_GT((*speed)["beside"]["value"]["median"], 0);
  const nlohmann::json* memory = find(figures, "mlp, one process: peak memory");
  ASSERT_NE(memory, nullptr);
  // The roof measurement's own arrays, 256 MiB, do not count as memory of the run.
  EXPECT_LT((*memory)["value"]["median"], 250);
}

// A benchmark ignores the cluster that Kubeflow gives a task.
TEST(Bench, StepStartsWhatItsOwnFlagsSay) {
  setenv("TF_CONFIG", R"({"cluster":{"ps":["a:1"],"worker":["b:1"]},"task":{"type":"ps"}})", 1);
  const auto figures = figures_of({"bench", "step", "mlp", "--hidden", "16", "--batch", "4",
                                   "--steps", "40", "--threads", "1"});
  unsetenv("TF_CONFIG");
  EXPECT_NE(find(figures, "mlp, one process"), nullptr);
}

// In a run of five steps none is timed; in a run of five seconds some would be.
TEST(Bench, StepEndsWhereItsFileOfFlagsSays) {
  const TemporaryFolder folder;
  const std::string job = folder.path("job.toml");
  std::ofstream(job) << "steps = 5\nhidden = 16\nbatch = 4\n";
  const Finished run = run_paceline({"bench", "step", "mlp", "--config", job, "--repeat", "1"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.output, HasSubstr("made no timed step"));
}

TEST(Bench, AMistakeInAFileOfFlagsSaysWhereItIs) {
  const TemporaryFolder folder;
  const std::string job = folder.path("job.toml");
  std::ofstream(job) << "hidden = 16\nepochs = 3\n";
  const Finished run = run_paceline({"bench", "step", "mlp", "--config", job});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.output, HasSubstr("(--epochs is from " + job + ", line 2"));
}

TEST(Bench, StepOfAClusterCountsAllWorkersAndTheLink) {
  const auto figures = figures_of({"bench", "step", "mlp", "--hidden", "16", "--seconds", "1",
                                   "--link", "tcp", "--ps", "1", "--workers", "2"});
  EXPECT_NE(find(figures, "mlp, 1 ps + 2 workers"), nullptr);
  const nlohmann::json* link = find(figures, "mlp, 1 ps + 2 workers: bound, link");
  ASSERT_NE(link, nullptr);
  EXPECT_GT((*link)["value"]["median"], 0);
}

// Returns the processes that `parent` has started, from lines "1234 (name) S 1233 …" in /proc.
std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::string text;
    std::getline(std::ifstream(entry.path() / "stat"), text);
    const std::size_t name_end = text.rfind(')');
    if (name_end == std::string::npos || text.substr(name_end + 2, 1) == "Z") continue;
    if (std::stoi(text.substr(name_end + 4)) == parent) children.push_back(std::stoi(text));
  }
  return children;
}

bool is_there(pid_t process) {
  std::string text;
  std::getline(std::ifstream("/proc/" + std::to_string(process) + "/stat"), text);
  return !text.empty() && text.substr(text.rfind(')') + 2, 1) != "Z";
}

TEST(Bench, WhoEndsItEndsTheRunThatItMeasures) {
  const Process bench(paceline_words({"bench", "step", "mlp", "--hidden", "16", "--seconds", "600",
                                      "--ps", "1", "--workers", "1"}));
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  const auto wait_until = [&](const auto& come) {
    while (!come() && std::chrono::steady_clock::now() < give_up) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return come();
  };
  std::vector<pid_t> run, tasks;
  ASSERT_TRUE(wait_until([&] {
    run = children_of(bench.pid());
    if (!run.empty()) tasks = children_of(run.front());
    return tasks.size() == 2;
  }));
  bench.signal(SIGTERM);
  tasks.push_back(run.front());
  for (const pid_t task : tasks) EXPECT_TRUE(wait_until([&] { return !is_there(task); })) << task;
}

TEST(Bench, StepOfFetchHasTheTimesOfItsShapes) {
  const auto figures =
      figures_of({"bench", "step", "fetch", "--set", "steps=5", "--ps", "1", "--workers", "1"});
  EXPECT_NE(find(figures, "fetch/128,32,256, remote_us"), nullptr);
  EXPECT_NE(find(figures, "fetch/256,128,64, added_us"), nullptr);
}

}  // namespace
}  // namespace paceline::testing
