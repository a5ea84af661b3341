// Tests strangers that call a job whose tasks are on several hosts: each is refused with a message
// on both sides, and the job trains on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <memory>

#include "base/address.h"
#include "base/temporary_folder.h"
#include "launch/lab/lab.h"
#include "launch/lab/lab_options.h"
#include "net/tls/secret_key.h"
#include "tests/process.h"

namespace paceline::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// A ps on host 0 and a worker on host 1 train with one key; host 2 belongs to a stranger.
class Security : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string why = why_no_lab();
    if (!why.empty()) GTEST_SKIP() << why;
    lab_ = std::make_unique<Lab>(3, LabLinks{.gbps = 1});
    ps_ = start(0, "ps:0", key_file_);
    worker_ = start(1, "worker:0", key_file_);
    ASSERT_TRUE(worker_->wait_for("Step: ", 60s)) << worker_->output() << ps_->output();
  }
  std::string spec() const { return "ps=" + address_ + ";worker=" + lab_address(1) + ":2223"; }
  Words task(const std::string& name) const {
    return paceline_words({"train", "mlp", "--hidden", "32", "--batch", "4", "--threads", "1",
                           "--steps", "1000000000", "--cluster", spec(), "--task", name});
  }
  std::unique_ptr<Process> start(int host, const std::string& name, const std::string& key) const {
    return std::make_unique<Process>(lab_->on_host(host, join({task(name), {"--key-file", key}})));
  }
  std::string write_key(const std::string& name, const SecretKey& key) const {
    std::string path = folder_.path(name);
    std::ofstream(path) << key.text();
    ::chmod(path.c_str(), 0600);
    return path;
  }
  /// Runs a stranger's command on host 2.
  Finished stranger(const Words& words) const {
    Process process(lab_->on_host(2, words));
    const int status = process.wait_exit(60s);
    return {status, process.output()};
  }
  Finished openssl(const Words& more) const {
    const std::string command = "openssl s_client -connect " + address_ + " \"$@\" < /dev/null";
    return stranger(join({{"timeout", "20", "bash", "-c", command, "openssl"}, more}));
  }
  void expect_trained_on() {
    EXPECT_TRUE(worker_->wait_for_more("Step: ", 60s)) << worker_->output();
  }
  /// Expects that the ps says why it refuses the stranger and names the stranger's host, and that
  /// the job trains on.
  void expect_refused(const std::string& why) {
    const std::string from = lab_address(2) + ":";
    EXPECT_TRUE(ps_->wait_for_next(why, 30s)) << ps_->output();
    EXPECT_THAT(ps_->output(), HasSubstr(from));
    expect_trained_on();
  }

  const TemporaryFolder folder_;
  const SecretKey key_ = SecretKey::make(), other_key_ = SecretKey::make();
  const std::string key_file_ = write_key("key", key_);
  const std::string address_ = lab_address(0) + ":2222";
  std::unique_ptr<Lab> lab_;
  std::unique_ptr<Process> ps_, worker_;
};

TEST_F(Security, StrangersWithTheOpensslCommandAreRefused) {
  const std::string wrong(64, '1');
  const Finished made_up = openssl({"-tls1_3", "-psk", wrong, "-psk_identity", "paceline:made-up"});
  EXPECT_NE(made_up.status, 0);
  expect_refused("a key of another program");
  const Finished claims = openssl({"-tls1_3", "-ciphersuites", "TLS_AES_128_GCM_SHA256", "-psk",
                                   wrong, "-psk_identity", "paceline:" + key_.fingerprint()});
  EXPECT_NE(claims.status, 0) << claims.output;
  expect_refused("claims the job's key, and does not have it");
  EXPECT_NE(openssl({"-tls1_3"}).status, 0);
  expect_refused("offers no key");
  EXPECT_NE(openssl({"-tls1_2"}).status, 0);
  expect_refused("versions of TLS before 1.3");
}

TEST_F(Security, StrangersWithoutEncryptionAreRefused) {
  const std::string port = std::to_string(parse_address(address_).port);
  stranger({"bash", "-c",
            "printf 'GET / HTTP/1.1\\r\\n\\r\\n' > /dev/tcp/" + lab_address(0) + "/" + port});
  expect_refused("does not encrypt");
}

TEST_F(Security, StrangersWhoAreTasksWithAnotherKeyLearnWhatToCompare) {
  const std::string other = write_key("other", other_key_);
  const Finished task =
      stranger(join({this->task("worker:0"), {"--key-file", other, "--join-timeout", "20"}}));
  EXPECT_NE(task.status, 0);
  EXPECT_THAT(task.output, AllOf(HasSubstr(address_), HasSubstr(other_key_.fingerprint()),
                                 Not(HasSubstr("--join-timeout"))))
      << "it ends at once: trying again does not help";
  expect_refused(other_key_.fingerprint());
  for (const SecretKey& key : {key_, other_key_}) {
    const std::string digits = key.text().substr(15, 64);
    EXPECT_THAT(task.output + ps_->output() + worker_->output(), Not(HasSubstr(digits)));
  }
}

TEST_F(Security, StrangersWhoAreTasksWithoutAKeyStopAtOnceWithTheCommandThatMakesOne) {
  const Words without =
      join({{"env", "-u", "PACELINE_KEY_FILE", "XDG_CONFIG_HOME=" + folder_.path("none")},
            this->task("worker:0")});
  const Finished task = stranger(without);
  EXPECT_EQ(task.status, 2) << task.output;
  EXPECT_THAT(task.output, AllOf(HasSubstr("`paceline key`"), HasSubstr("--insecure")));
  for (const char* const link : {"auto", "tcp"}) {
    const Finished insecure =
        stranger(join({without, {"--insecure", "--join-timeout", "60", "--link", link}}));
    EXPECT_NE(insecure.status, 0) << insecure.output;
    EXPECT_THAT(insecure.output, AllOf(HasSubstr(address_), HasSubstr("without --insecure"),
                                       Not(HasSubstr("--join-timeout"))))
        << "it ends at once: trying again does not help";
    expect_refused("does not encrypt");
  }
}

}  // namespace
}  // namespace paceline::testing
