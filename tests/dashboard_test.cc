// Tests the live page of a run, which is read while the run trains.
#include "dashboard/dashboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "dashboard/http_get.h"
#include "net/testing/certificates.h"
#include "paceline/error.h"
#include "tests/process.h"

namespace paceline::testing {
namespace {

using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace std::chrono_literals;

std::string get(const std::string& url) { return http_get(url, Deadline::after(30s)).body; }

/// A run that trains until the test ends it.
class ServedRun {
 public:
  explicit ServedRun(const Words& flags, const std::string& at = ":0")
      : process_(join({{PACELINE_COMMAND, "train", "mlp", "--hidden", "8", "--seconds", "3600"},
                       {"--dashboard", at},
                       flags})) {}
  std::string url() {
    EXPECT_TRUE(process_.wait_for("Dashboard: http", 60s)) << process_.output();
    EXPECT_TRUE(process_.wait_for_more("\n", 60s));
    const std::string& output = process_.output();
    const std::size_t at = output.find("http", output.find("Dashboard: "));
    return output.substr(at, output.find('\n', at) - at);
  }
  /// Returns the state of the page once `ready` is true for each task.
  template <typename Ready>
  static Json state_when(const std::string& url, Ready ready) {
    Json state;
    for (const Deadline until = Deadline::after(100s); !until.passed();) {
      state = Json::parse(get(url + "/state.json"));
      if (std::ranges::all_of(state["tasks"], ready)) return state;
      std::this_thread::sleep_for(100ms);
    }
    ADD_FAILURE() << state.dump(2);
    return state;
  }
  int interrupt() {
    process_.signal(SIGINT);
    return process_.wait_exit(60s);
  }
  Process& process() { return process_; }

 private:
  Process process_;
};

bool is_shown(const Json& task) {
  return task["heard_s"].is_number() && task["steps"].get<int>() > 0 && !task["share"].empty() &&
         (task["task"].get<std::string>().starts_with("ps") ||
          task["recent"]["steps_per_s"].is_number());
}

struct Way {
  const char* name;
  Words flags;
  std::size_t tasks;
  bool predicted = true;
};
std::ostream& operator<<(std::ostream& out, const Way& way) { return out << way.name; }

class DashboardOf : public ::testing::TestWithParam<Way> {};

TEST_P(DashboardOf, ShowsEachTask) {
  ServedRun run(GetParam().flags);
  const std::string url = run.url();
  const Json state = ServedRun::state_when(url, is_shown);
  EXPECT_EQ(state["tasks"].size(), GetParam().tasks);
  EXPECT_EQ(state["state"], "training");
  EXPECT_EQ(state["run"]["model"], "mlp");
  EXPECT_GT(state["steps_per_s"], 0);
  EXPECT_GT(state["global_step"], 0);
  EXPECT_FALSE(state["history"]["seconds"].empty());
  EXPECT_TRUE(state["cause"].is_string());
  EXPECT_EQ(state["expected"].is_object(), GetParam().predicted);
  const std::string metrics = get(url + "/metrics");
  for (const Json& task : state["tasks"]) {
    EXPECT_THAT(metrics, HasSubstr("paceline_task_steps_total{task=" + task["task"].dump() + "} "));
  }
  EXPECT_THAT(get(url),
              AllOf(StartsWith("<!doctype html>"), HasSubstr("--ground:"), HasSubstr("poll();")));
  EXPECT_EQ(run.interrupt(), 130) << run.process().output();
  EXPECT_THROW(get(url), Error) << "the port is free again";
}

INSTANTIATE_TEST_SUITE_P(
    Ways, DashboardOf,
    ::testing::Values(
        Way{"alone", {}, 1, false}, Way{"async", {"--ps", "2", "--workers", "2"}, 4},
        Way{"ssp", {"--ps", "1", "--workers", "2", "--strategy", "ssp"}, 3},
        Way{"sync", {"--ps", "2", "--workers", "2", "--strategy", "sync"}, 4},
        Way{"allreduce", {"--ps", "0", "--workers", "2"}, 2},
        Way{"local_sgd", {"--ps", "1", "--workers", "2", "--strategy", "local_sgd"}, 3}),
    [](const auto& way) { return std::string(way.param.name); });

TEST(Dashboard, TheFolderOfARunSaysWhereItsPageIsAsLongAsThereIsOne) {
  const TemporaryFolder folder;
  const std::string file = folder.path("run/dashboard");
  ServedRun run(Words{"--out", folder.path("run")});
  const std::string url = run.url();
  std::string said;
  std::getline(std::ifstream(file), said);
  EXPECT_EQ(said, url);
  EXPECT_EQ(ServedRun::state_when(url, is_shown)["run"]["out"], folder.path("run"));
  EXPECT_EQ(run.interrupt(), 130) << run.process().output();
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(Top, ShowsARunWhileItTrainsAndAfterItsEnd) {
  const TemporaryFolder folder;
  const std::string out = folder.path("run");
  ServedRun run(Words{"--ps", "1", "--workers", "2", "--out", out});
  const std::string url = run.url();
  ServedRun::state_when(url, is_shown);
  for (const std::string& name : {url, url + "/", out}) {
    const Finished top = run_paceline({"top", name});
    EXPECT_EQ(top.status, 0) << top.output;
    EXPECT_THAT(top.output, HasSubstr("mlp  async  training"));
    EXPECT_THAT(top.output, HasSubstr("worker:1"));
  }
  EXPECT_EQ(run.interrupt(), 130) << run.process().output();
  for (const std::string& name : {out, out + "/report.json"}) {
    const Finished top = run_paceline({"top", name});
    EXPECT_EQ(top.status, 0) << top.output;
    EXPECT_THAT(top.output, HasSubstr("mlp  async  ended: interrupted"));
    EXPECT_THAT(top.output, HasSubstr(" --resume  ")) << "no terminal cuts the line";
  }
  EXPECT_THAT(run_paceline({"top", url}).output, HasSubstr("nobody listens at"));
}

TEST(Top, SaysHowAnAddressIsWritten) {
  for (const std::string address : {"127.0.0.1:1", "127.0.0.1:1/"}) {
    const Finished top = run_paceline({"top", address});
    EXPECT_EQ(top.status, 2);
    EXPECT_THAT(top.output,
                AllOf(HasSubstr("RUN " + address + ": "), HasSubstr("write http://127.0.0.1:1")));
  }
}

TEST(Top, SaysWhatIsNotThere) {
  const Finished top = run_paceline({"top", "/nonexistent"});
  EXPECT_EQ(top.status, 1);
  EXPECT_THAT(top.output, HasSubstr("/nonexistent: no run with --dashboard trains there, and there "
                                    "is no report of a run that has ended"));
}

TEST(Dashboard, APortThatIsTakenIsAnErrorThatNamesTheFlag) {
  ServedRun first(Words{});
  const std::string url = first.url();
  const std::string port = url.substr(url.rfind(':'));
  const Finished second = run_paceline({"train", "mlp", "--steps", "20", "--dashboard", port});
  EXPECT_EQ(second.status, 2);
  EXPECT_THAT(second.output, HasSubstr("--dashboard 127.0.0.1" + port + ": port "));
  EXPECT_THAT(second.output, HasSubstr("is in use"));
  EXPECT_EQ(first.interrupt(), 130);
}

std::string token_file(const TemporaryFolder& folder) {
  std::string path = folder.path("token");
  std::ofstream(path) << "0123456789abcdef\n";
  std::filesystem::permissions(path, std::filesystem::perms(0600));
  return path;
}

TEST(Dashboard, ThatOtherHostsReachNeedsATokenAndACertificate) {
  const TemporaryFolder folder;
  const Words open = {"train", "mlp", "--steps", "20", "--dashboard", "0.0.0.0:0"};
  for (const Words& more : {Words{}, {"--insecure"}, {"--dashboard-token", token_file(folder)}}) {
    const Finished run = run_paceline(join({open, more}), 20s);
    EXPECT_EQ(run.status, 2);
    EXPECT_THAT(run.output, AllOf(HasSubstr("--dashboard 0.0.0.0:0: other hosts reach it"),
                                  HasSubstr("--dashboard-token FILE"),
                                  HasSubstr("--dashboard-cert FILE"), HasSubstr("ssh -L")));
  }
}

TEST(Dashboard, WithATokenIsShownToWhoeverKnowsIt) {
  const TemporaryFolder folder;
  ServedRun run(Words{"--dashboard-token", token_file(folder)});
  const std::string url = run.url();
  EXPECT_EQ(http_get(url + "/state.json", Deadline::after(30s)).status, 401);
  const Words top = {"top", url, "--once"};
  const Finished stranger = run_paceline(top, 20s);
  EXPECT_EQ(stranger.status, 1);
  EXPECT_THAT(stranger.output, HasSubstr("needs the token of --dashboard-token"));
  const Finished known = run_paceline(join({top, {"--dashboard-token", token_file(folder)}}), 20s);
  EXPECT_EQ(known.status, 0) << known.output;
  EXPECT_EQ(run.interrupt(), 130);
  EXPECT_THAT(run.process().output(), Not(HasSubstr("0123456789abcdef")));
}

TEST(Dashboard, ThatOtherHostsReachIsEncryptedWithACertificate) {
  const TemporaryFolder folder;
  const Signed authority = make_certificate("an authority", "", nullptr);
  const std::string ca = write_pem(authority, folder.path("ca")).certificate;
  const PemFiles page =
      write_pem(make_certificate("page", "IP:127.0.0.1", &authority), folder.path("page"));
  ServedRun run(Words{"--dashboard-token", token_file(folder), "--dashboard-cert", page.certificate,
                      "--dashboard-key", page.key},
                "0.0.0.0:0");
  const std::string named = run.url();
  EXPECT_THAT(named, StartsWith("https://"));
  const std::string url = "https://127.0.0.1" + named.substr(named.rfind(':'));
  const Words top = {"top", url, "--once", "--dashboard-token", token_file(folder)};
  const Finished doubts = run_paceline(top, 20s);
  EXPECT_EQ(doubts.status, 1);
  EXPECT_THAT(doubts.output, HasSubstr("certificate is not accepted"));
  const Finished trusts = run_paceline(join({top, {"--dashboard-ca", ca}}), 20s);
  EXPECT_EQ(trusts.status, 0) << trusts.output;
  EXPECT_EQ(run.interrupt(), 130);
  EXPECT_THAT(run.process().output(), Not(HasSubstr("not encrypted")));
}

TEST(Dashboard, AnAddressOfAnotherMachineIsAnErrorThatNamesTheFlag) {
  const TemporaryFolder folder;
  const Finished run =
      run_paceline(join({{"train", "mlp", "--steps", "20", "--dashboard", "192.0.2.1:0"},
                         {"--dashboard-token", token_file(folder), "--insecure"}}));
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.output, HasSubstr("--dashboard 192.0.2.1:0: cannot listen at"));
}

TEST(Dashboard, ARunThatFailsGivesItsPortBack) {
  ServedRun run(Words{"--ps", "1", "--workers", "2"});
  const std::string url = run.url();
  ServedRun::state_when(url, is_shown);
  run.process().signal(SIGTERM);
  EXPECT_NE(run.process().wait_exit(60s), 0);
  EXPECT_THROW(get(url), Error);
}

}  // namespace
}  // namespace paceline::testing
