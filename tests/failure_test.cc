// Tests jobs in which a task fails or never arrives: the task is named, and nothing hangs.
// (fault_test.cc tests what a peer notices in each phase of a job.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <memory>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using std::chrono::seconds;
using ::testing::AnyOf;
using ::testing::HasSubstr;

TEST(Launcher, NamesTheFirstTaskThatFailedOnceAtTheEnd) {
  Process launcher(paceline_words({"train", "mlp", "--hidden", "32", "--batch", "8", "--threads",
                                   "1", "--ps", "1", "--workers", "2"}));
  ASSERT_TRUE(launcher.wait_for("Step: ", seconds(60))) << launcher.output();
  Process killer({"pkill", "-KILL", "-P", std::to_string(launcher.pid()), "-f", "task ps:0"});
  ASSERT_EQ(killer.wait_exit(seconds(10)), 0);
  EXPECT_EQ(launcher.wait_exit(seconds(20)), 1) << launcher.output();
  const std::string cause = "ps:0 failed first: killed by signal 9";
  const std::size_t at = launcher.output().find(cause);
  ASSERT_NE(at, std::string::npos) << launcher.output();
  EXPECT_EQ(launcher.output().find("failed first", at + cause.size()), std::string::npos)
      << launcher.output();
}

TEST(Refusal, AWorkerWhosePsNeverComesSaysSoAtItsJoinTimeout) {
  const Finished run = run_paceline({"train", "mlp", "--hidden", "32", "--cluster",
                                     "ps=" + free_address() + ";worker=" + free_address(), "--task",
                                     "worker:0", "--join-timeout", "1"},
                                    seconds(20));
  EXPECT_EQ(run.status, 1) << run.output;
  EXPECT_THAT(run.output, HasSubstr("ps:0"));
}

TEST(Refusal, AnInterruptEndsTheWaitForAPs) {
  Process worker(
      paceline_words({"train", "mlp", "--hidden", "32", "--cluster",
                      "ps=" + free_address() + ";worker=" + free_address(), "--task", "worker:0"}));
  ASSERT_TRUE(worker.wait_for("waiting for ps:0", seconds(20))) << worker.output();
  worker.signal(SIGINT);
  EXPECT_EQ(worker.wait_exit(seconds(20)), 130);
  // The worker ended by itself, and was not killed for ignoring the signal.
  EXPECT_THAT(worker.output(), HasSubstr("worker:0 was interrupted"));
}

TEST(Absence, AWorkerEndsAtTheLastStepWithoutWaitingForOneThatNeverCame) {
  const TemporaryFolder folder;
  const std::string corpus = folder.path("corpus");
  ASSERT_EQ(run_paceline({"data", "corpus", "--out", corpus, "--words", "200000"}).status, 0);
  const std::string spec =
      "ps=" + free_address() + ";worker=" + free_address() + "," + free_address();
  // A ps reads no text.
  Process server(
      paceline_words({"train", "ptb", "--steps", "30", "--cluster", spec, "--task", "ps:0"}));
  Process chief(paceline_words({"train", "ptb", "--size", "test", "--data", corpus, "--steps", "30",
                                "--cluster", spec, "--task", "worker:0"}));
  EXPECT_EQ(chief.wait_exit(seconds(60)), 0) << chief.output();
  EXPECT_EQ(server.wait_exit(seconds(20)), 0) << server.output();
}

TEST(Refusal, APsThatNobodyJoinsEndsAtItsJoinTimeout) {
  const Finished run = run_paceline(
      {"train", "mlp", "--cluster", "ps=" + free_address() + ";worker=" + free_address(), "--task",
       "ps:0", "--join-timeout", "1"},
      seconds(20));
  EXPECT_EQ(run.status, 1) << run.output;
}

TEST(Refusal, APortInUseIsNamed) {
  const std::string address = free_address(), worker = free_address();
  const std::vector<std::string> words = {
      "train",  "mlp",  "--cluster",      "ps=" + address + ";worker=" + worker,
      "--task", "ps:0", "--join-timeout", "30"};
  Process first(paceline_words(words));
  ASSERT_TRUE(first.wait_for(address, seconds(20))) << first.output();
  const Finished second = run_paceline(words, seconds(20));
  EXPECT_EQ(second.status, 1);
  EXPECT_THAT(second.output, HasSubstr("error: ps:0: port "));
  EXPECT_THAT(second.output, HasSubstr("in use"));
}

TEST(Refusal, AnAddressOfAnotherHostIsNamedWithTheFlagThatListensElsewhere) {
  const std::string spec = "ps=192.0.2.1:2222;worker=" + free_address();
  const TemporaryFolder folder;
  const Words words = {"train", "mlp", "--cluster", spec, "--task", "ps:0", "--join-timeout", "1"};
  const Finished run = run_paceline(join({words, with_key(folder)}), seconds(20));
  EXPECT_EQ(run.status, 1) << run.output;
  EXPECT_THAT(run.output, HasSubstr("ps:0: cannot listen at 192.0.2.1:2222: this machine has no "
                                    "such address; --bind 0.0.0.0 listens"));
}

TEST(Refusal, AnUnknownHostIsNamed) {
  const TemporaryFolder folder;
  const Words words = {"train",          "mlp",
                       "--hidden",       "32",
                       "--cluster",      "ps=no-such-host.invalid:2222;worker=" + free_address(),
                       "--task",         "worker:0",
                       "--join-timeout", "1"};
  const Finished run = run_paceline(join({words, with_key(folder)}), seconds(60));
  EXPECT_EQ(run.status, 1) << run.output;
  // Machines on which no name server answers print the second text.
  EXPECT_THAT(run.output, AnyOf(HasSubstr("unknown host 'no-such-host.invalid'"),
                                HasSubstr("looking up the host 'no-such-host.invalid'")));
}

/// A ps and its workers.
class PsAndWorkers : public ::testing::Test {
 protected:
  std::unique_ptr<Process> start(const std::string& task, const std::string& spec,
                                 const Words& more = {"--hidden", "32"}) const {
    return std::make_unique<Process>(
        paceline_words(join({{"train", "mlp", "--batch", "8", "--threads", "1", "--steps", "30",
                              "--cluster", spec, "--cluster-id", "test", "--task", task},
                             more})));
  }
  const std::string ps_ = free_address(), chief_ = free_address(), other_ = free_address();
  const std::string spec_ = "ps=" + ps_ + ";worker=" + chief_ + "," + other_;
};

TEST_F(PsAndWorkers, WithOtherVariablesNameTheFirstThatDiffers) {
  const auto server = start("ps:0", spec_), chief = start("worker:0", spec_);
  const auto other = start("worker:1", spec_, {"--hidden", "48"});
  EXPECT_EQ(other->wait_exit(seconds(60)), 1) << other->output();
  EXPECT_THAT(other->output(), HasSubstr("other variables: "));
  EXPECT_THAT(other->output(), HasSubstr("(256,48)"));
  EXPECT_THAT(other->output(), HasSubstr("(256,32)"));
  EXPECT_EQ(chief->wait_exit(seconds(60)), 0) << chief->output();
  EXPECT_EQ(server->wait_exit(seconds(60)), 0) << server->output();
}

TEST_F(PsAndWorkers, WhoseFlagsDifferAreToldWhichAndTheChiefTrains) {
  const auto server = start("ps:0", spec_), chief = start("worker:0", spec_);
  const auto other = start("worker:1", spec_, {"--hidden", "32", "--accumulate", "4"});
  EXPECT_EQ(other->wait_exit(seconds(60)), 1) << other->output();
  EXPECT_THAT(other->output(), HasSubstr("the chief's --accumulate is 1, that of worker:1 is 4"));
  EXPECT_EQ(chief->wait_exit(seconds(60)), 0) << chief->output();
  EXPECT_EQ(server->wait_exit(seconds(60)), 0) << server->output();
}

TEST_F(PsAndWorkers, OfAClusterWithAnotherNumberOfWorkersAreRefused) {
  const auto server = start("ps:0", spec_);
  const auto worker = start("worker:0", "ps=" + ps_ + ";worker=" + chief_);
  EXPECT_EQ(worker->wait_exit(seconds(60)), 1) << worker->output();
  EXPECT_THAT(worker->output(), HasSubstr("the cluster has 2 workers here, 1 there"));
}

/// Connects to "127.0.0.1:port", sends, and closes.
void send_bytes(const std::string& address, const std::string& bytes) {
  const int fd = connect_to(address);
  // The peer may close the connection before it has read everything.
  [[maybe_unused]] const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  close(fd);
}

TEST_F(PsAndWorkers, TrainThoughStrangersSendGarbage) {
  const auto server = start("ps:0", spec_);
  ASSERT_TRUE(server->wait_for("listening on", seconds(60))) << server->output();
  send_bytes(ps_, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  send_bytes(ps_, std::string(100'000, '\xff'));
  send_bytes(ps_, "");
  const auto chief = start("worker:0", spec_), other = start("worker:1", spec_);
  EXPECT_EQ(chief->wait_exit(seconds(60)), 0) << chief->output();
  EXPECT_EQ(other->wait_exit(seconds(60)), 0) << other->output();
  EXPECT_EQ(server->wait_exit(seconds(60)), 0) << server->output();
}

}  // namespace
}  // namespace paceline::testing
