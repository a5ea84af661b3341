#include "launch/job_security.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/temporary_folder.h"
#include "base/testing/error_of.h"
#include "base/text_file.h"

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(IsOfThisHost, LoopbackAndOwnInterfacesAreAndNamesThatNobodyKnowsAreNot) {
  for (const char* const here : {"127.0.0.1:1", "127.3.2.1:1", "localhost:1", "[::1]:1"})
    EXPECT_TRUE(is_of_this_host(here)) << here;
  for (const char* const other :
       {"192.0.2.1:1", "[2001:db8::1]:1", "0.0.0.0:1", "nobody.invalid:1"})
    EXPECT_FALSE(is_of_this_host(other)) << other;
}

class JobSecurity : public ::testing::Test {
 protected:
  JobSecurity() {
    ::setenv("XDG_CONFIG_HOME", folder_.path().c_str(), 1);
    ::unsetenv("PACELINE_KEY_FILE");
  }
  ~JobSecurity() override { ::unsetenv("XDG_CONFIG_HOME"); }

  static Cluster task_of(const std::string& spec) {
    Cluster cluster;
    cluster.process = Cluster::Process::kTask;
    cluster.spec = ClusterSpec::parse(spec);
    return cluster;
  }
  static Cluster launcher() {
    Cluster cluster;
    cluster.process = Cluster::Process::kLauncher;
    cluster.launch.ps = cluster.launch.workers = 1;
    return cluster;
  }
  std::string key_file() const {
    std::string path = folder_.path("a.key");
    write_text_file("a key", path, SecretKey::make().text());
    std::filesystem::permissions(path, std::filesystem::perms(0600));
    return path;
  }
  static std::string refusal(const Cluster& cluster, const std::string& apart = "") {
    return error_of(ErrorCode::kUsage, [&] { secure_job(cluster, apart); });
  }

  const TemporaryFolder folder_;
};

const char* const kApart = "the tasks are on several hosts";
const char* const kHere = "ps=127.0.0.1:1;worker=localhost:2";
const char* const kElsewhere = "ps=127.0.0.1:1;worker=localhost:2,192.0.2.1:3";

TEST_F(JobSecurity, LinksWithinAHostNeedNoKey) {
  EXPECT_FALSE(secure_job(task_of(kHere), {})->has_proof());
  EXPECT_FALSE(secure_job(launcher(), {})->has_proof());
  EXPECT_EQ(secure_job(Cluster(), {}), nullptr);
}

TEST_F(JobSecurity, ATaskWithPeersElsewhereNeedsAKeyOrSaysThatItIsInsecure) {
  Cluster task = task_of(kElsewhere);
  EXPECT_THAT(refusal(task), AllOf(HasSubstr("worker:1 at 192.0.2.1:3 is on another host"),
                                   HasSubstr("`paceline key`"), HasSubstr("--key-file"),
                                   HasSubstr("--insecure does without, and whoever reaches")));
  task.links.security.key_file = key_file();
  EXPECT_TRUE(secure_job(task, {})->has_proof());
  task.links.security = {.tls = Tls::kNever};
  EXPECT_FALSE(secure_job(task, {})->has_proof());
}

TEST_F(JobSecurity, ThatIsAlwaysEncryptedNeedsAKeyWithinAHostToo) {
  Cluster task = task_of(kHere);
  task.links.security.tls = Tls::kAlways;
  EXPECT_THAT(refusal(task), HasSubstr("--tls on encrypts every link"));
  task.links.security.key_file = key_file();
  EXPECT_TRUE(secure_job(task, {})->has_proof());
}

TEST_F(JobSecurity, ALauncherMakesAKeyForTheTasksThatNeedOne) {
  const auto made = secure_job(launcher(), kApart);
  ASSERT_TRUE(made->key);
  EXPECT_NE(made->key->fingerprint(), secure_job(launcher(), kApart)->key->fingerprint());
  EXPECT_FALSE(secure_job(launcher(), "")->key);
  Cluster always = launcher();
  always.links.security.tls = Tls::kAlways;
  EXPECT_TRUE(secure_job(always, {})->key);
  Cluster own = launcher();
  own.links.security.key_file = key_file();
  EXPECT_EQ(secure_job(own, kApart)->key->fingerprint(),
            SecretKey::read(own.links.security.key_file).fingerprint());
  Cluster insecure = launcher();
  insecure.links.security.tls = Tls::kNever;
  EXPECT_FALSE(secure_job(insecure, kApart)->key);
}

// The servers would not know a key that this launcher makes.
TEST_F(JobSecurity, ALauncherForServersElsewhereNeedsTheirKey) {
  Cluster cluster = launcher();
  cluster.existing_servers = true;
  cluster.spec.ps = {"192.0.2.1:1"};
  EXPECT_THAT(refusal(cluster), HasSubstr("ps:0 at 192.0.2.1:1 is on another host"));
  cluster.spec.ps = {"127.0.0.1:1"};
  EXPECT_FALSE(secure_job(cluster, {})->has_proof());
}

TEST_F(JobSecurity, MpiSendsInTheClear) {
  Cluster task = task_of("worker=localhost:2,192.0.2.1:3");
  task.links.collectives = "mpi";
  task.links.security.key_file = key_file();
  EXPECT_THAT(refusal(task), AllOf(HasSubstr("--collectives mpi: worker:1 at 192.0.2.1:3"),
                                   HasSubstr("MPI sends in the clear: --insecure")));
  task.links.security = {.tls = Tls::kNever};
  EXPECT_NE(secure_job(task, {}), nullptr);
  Cluster here = task_of("worker=127.0.0.1:2,127.0.0.1:3");
  here.links.collectives = "mpi";
  EXPECT_NE(secure_job(here, {}), nullptr);
}

TEST_F(JobSecurity, AKeyThatCannotBeReadIsWrongUsage) {
  Cluster task = task_of(kHere);
  task.links.security.key_file = folder_.path("none");
  EXPECT_THAT(refusal(task), HasSubstr(folder_.path("none") + " cannot be read"));
  task.links.security = {.certificate = "c"};
  EXPECT_THAT(refusal(task), HasSubstr("--tls-cert, --tls-key and --tls-ca are given together"));
}

TEST_F(JobSecurity, AServerForOtherHostsNeedsAKey) {
  EXPECT_FALSE(secure_server({}, "127.0.0.1:1")->has_proof());
  EXPECT_THAT(error_of(ErrorCode::kUsage, [] { secure_server({}, "0.0.0.0:1"); }),
              HasSubstr("--bind 0.0.0.0:1: workers of other hosts may come"));
  EXPECT_THAT(
      error_of(ErrorCode::kUsage, [] { secure_server({}, "0.0.0.0:1", "--listen", "askers"); }),
      HasSubstr("--listen 0.0.0.0:1: askers of other hosts may come"));
  EXPECT_TRUE(secure_server({.key_file = key_file()}, "0.0.0.0:1")->has_proof());
  EXPECT_FALSE(secure_server({.tls = Tls::kNever}, "0.0.0.0:1")->has_proof());
  EXPECT_THAT(error_of([] { secure_server({.tls = Tls::kAlways}, "127.0.0.1:1"); }),
              HasSubstr("needs a proof"));
}

TEST_F(JobSecurity, OneThatCallsOtherHostsNeedsAKey) {
  EXPECT_FALSE(secure_calls({}, {"127.0.0.1:1", "localhost:2"})->has_proof());
  EXPECT_THAT(error_of(ErrorCode::kUsage,
                       [] {
                         secure_calls({}, {"127.0.0.1:1", "192.0.2.1:2"});
                       }),
              HasSubstr("192.0.2.1:2 is on another host"));
  EXPECT_THAT(error_of([] { secure_calls({.tls = Tls::kAlways}, {"127.0.0.1:1"}); }),
              HasSubstr("needs a proof"));
  EXPECT_TRUE(secure_calls({.key_file = key_file()}, {"192.0.2.1:2"})->has_proof());
  EXPECT_FALSE(secure_calls({.tls = Tls::kNever}, {"192.0.2.1:2"})->has_proof());
}

TEST_F(JobSecurity, IsSaidInWords) {
  Security security{.key_file = key_file()};
  EXPECT_EQ(tls_in_words(security), "links that leave the host");
  security.loaded = load_security(security);
  EXPECT_EQ(tls_in_words(security),
            "links that leave the host (key " + security.loaded->key->fingerprint() + ")");
  EXPECT_EQ(tls_in_words({.tls = Tls::kAlways}), "all links");
  EXPECT_EQ(tls_in_words({.tls = Tls::kNever}),
            "none (--insecure): whoever reaches a port may join the job, read and change what is "
            "sent");
}

}  // namespace
}  // namespace paceline
