// Tests links between hosts that lose packets, become slow, or are cut and restored while a job
// trains over them. The hosts are emulated, which only root may do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <memory>
#include <optional>
#include <thread>

#include "launch/lab/lab.h"
#include "launch/lab/lab_options.h"
#include "paceline/error.h"
#include "tests/process.h"

namespace paceline::testing {
namespace {

using nlohmann::json;
using std::chrono::seconds;

constexpr seconds kForLinks{60};
const Words kTraining = {"train", "mlp",       "--hidden", "48",    "--batch",
                         "16",    "--threads", "1",        "--set", "print_every=10"};

class LinkFaults : public ::testing::Test {
 protected:
  /// The ps and the chief are on host 0, and each other worker has its own host. A single worker is
  /// on host 1.
  void start(int workers, const Words& more) {
    const int hosts = std::max(2, workers);
    try {
      lab_.emplace(hosts, LabLinks{.gbps = 1});
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
    std::string spec = fmt::format("ps={}:2222;worker=", lab_address(0));
    for (int worker = 0; worker < workers; ++worker) {
      spec += fmt::format("{}{}:{}", worker == 0 ? "" : ",", lab_address(host_of(worker, workers)),
                          2223 + worker);
    }
    const Words task = join({kTraining, more, with_key(folder_), {"--cluster", spec, "--task"}});
    ps_ = start_on(0, join({task, {"ps:0"}}));
    for (int worker = 0; worker < workers; ++worker) {
      const std::string name = fmt::format("worker:{}", worker);
      workers_.push_back(
          start_on(host_of(worker, workers), join({task, {name, "--report", folder_.path(name)}})));
    }
    for (const auto& worker : workers_) {
      ASSERT_TRUE(worker->wait_for("Step: ", kForLinks)) << worker->output();
    }
  }
  static int host_of(int worker, int workers) { return workers == 1 ? 1 : worker; }
  std::unique_ptr<Process> start_on(int host, const Words& words) const {
    return std::make_unique<Process>(lab_->on_host(host, paceline_words(words)));
  }
  static json read(const std::string& path) { return json::parse(std::ifstream(path)); }

  const TemporaryFolder folder_;
  std::optional<Lab> lab_;
  std::unique_ptr<Process> ps_;
  std::vector<std::unique_ptr<Process>> workers_;
};

/// A disturbance of host 1's link, which is over before the job ends.
struct Disturbance {
  const char* name;
  void (*begin)(Lab&);
  void (*end)(Lab&);
};

constexpr Disturbance kDisturbances[] = {
    {"LosesOnePacketInAHundred", [](Lab& lab) { lab.lose(1, 0.01); }, [](Lab&) {}},
    {"IsCutForTwoSeconds", [](Lab& lab) { lab.cut(1); },
     [](Lab& lab) {
       std::this_thread::sleep_for(seconds(2));
       lab.mend(1);
     }},
    {"FallsToATenthOfItsRate", [](Lab& lab) { lab.set_rate(1, 0.1); }, [](Lab&) {}},
};

class DisturbedLink : public LinkFaults, public ::testing::WithParamInterface<Disturbance> {
 protected:
  static Words steps(const char* step_ms) {
    return {"--steps", "1500", "--device", "sim", "--sim-step-ms", step_ms, "--sim-compute"};
  }
  /// Returns the last loss of the same job over undisturbed links.
  static double undisturbed_loss() {
    static const double loss = [] {
      const TemporaryFolder folder;
      const Finished run = run_paceline(
          join({kTraining,
                steps("0.001"),
                {"--ps", "1", "--workers", "1", "--link", "tcp", "--report", folder.path("r")}}));
      EXPECT_EQ(run.status, 0) << run.output;
      return read(folder.path("r"))["loss"]["last"].get<double>();
    }();
    return loss;
  }
};

TEST_P(DisturbedLink, LeavesNoTraceInTheLosses) {
  start(1, steps("5"));
  if (IsSkipped() || HasFatalFailure()) return;
  Process& worker = *workers_[0];
  try {
    GetParam().begin(*lab_);
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  GetParam().end(*lab_);
  EXPECT_EQ(worker.wait_exit(2 * kForLinks), 0) << worker.output();
  EXPECT_EQ(ps_->wait_exit(kForLinks), 0) << ps_->output();
  const json report = read(folder_.path("worker:0"));
  EXPECT_EQ(report["global_step"], 1500);
  EXPECT_EQ(report["loss"]["last"].get<double>(), undisturbed_loss());
}

INSTANTIATE_TEST_SUITE_P(Links, DisturbedLink, ::testing::ValuesIn(kDisturbances),
                         [](const auto& info) { return info.param.name; });

class CutLink : public LinkFaults, public ::testing::WithParamInterface<const char*> {};

TEST_P(CutLink, CostsTheOthersNothingAndTheWorkerComesBack) {
  start(2,
        {"--steps", "1000000", "--device", "sim", "--sim-step-ms", "3", "--strategy", GetParam()});
  if (IsSkipped() || HasFatalFailure()) return;
  lab_->cut(1);
  EXPECT_TRUE(ps_->wait_for("lost worker:1", kForLinks)) << ps_->output();
  EXPECT_TRUE(workers_[1]->wait_for("lost ps:0", kForLinks)) << workers_[1]->output();
  EXPECT_TRUE(workers_[0]->wait_for_more("Step: ", kForLinks)) << workers_[0]->output();
  lab_->mend(1);
  EXPECT_TRUE(ps_->wait_for("worker:1 is back", kForLinks)) << ps_->output();
  for (const auto& worker : workers_) {
    EXPECT_TRUE(worker->wait_for_more("Step: ", kForLinks)) << worker->output();
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, CutLink, ::testing::Values("async", "sync"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace paceline::testing
