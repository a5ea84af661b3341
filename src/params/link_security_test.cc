#include <gtest/gtest.h>

#include <filesystem>

#include "base/temporary_folder.h"
#include "base/text_file.h"
#include "net/tls/link_security.h"
#include "params/collective/collective_store.h"
#include "params/ps/serve.h"
#include "params/testing/raw_peer.h"
#include "params/worker/ps_store.h"
#include "params/worker/ps_strategy.h"

namespace paceline {
namespace {

class LinkSecurityOfATask : public ::testing::Test {
 protected:
  LinkSecurityOfATask() {
    const SecretKey key = SecretKey::make();
    write_text_file("a key", folder_.path("key"), key.text());
    std::filesystem::permissions(folder_.path("key"), std::filesystem::perms(0600));
    fingerprint_ = key.fingerprint();
    cluster_.spec = {.ps = {"127.0.0.1:1"}, .workers = {"127.0.0.1:2", "127.0.0.1:3"}};
    cluster_.links.security = {.tls = Tls::kAlways, .key_file = folder_.path("key")};
  }
  /// Returns the options with which a task asks for its link. The test then gives it no link.
  template <typename Options, typename Join>
  LinkOptions made_with(Options options, Join join) {
    struct NoLink {};
    LinkOptions made;
    options.spec = cluster_.spec;
    options.security = cluster_.links.security;
    options.link_factory = [&](const LinkOptions& link) -> std::unique_ptr<Link> {
      made = link;
      throw NoLink();
    };
    EXPECT_THROW(join(options), NoLink);
    return made;
  }
  void expect_secured(const LinkOptions& link) {
    ASSERT_NE(link.security, nullptr);
    EXPECT_EQ(link.security->tls, Tls::kAlways);
    ASSERT_TRUE(link.security->key);
    EXPECT_EQ(link.security->key->fingerprint(), fingerprint_);
    EXPECT_TRUE(link.refused);
  }

  const TemporaryFolder folder_;
  std::string fingerprint_;
  Cluster cluster_;
};

TEST_F(LinkSecurityOfATask, IsWhatItsClusterSays) {
  const auto print = [](const std::string&) {};
  PsOptions ps;
  ps.task = {TaskId::Role::kPs, 0};
  ps.warn = print;
  expect_secured(made_with(ps, [](const PsOptions& options) { serve(options); }));
  JoinOptions worker{.cluster = cluster_, .say = print};
  PsStoreOptions store = ps_store_options(worker);
  EXPECT_EQ(store.security.key_file, cluster_.links.security.key_file);
  expect_secured(made_with(
      store, [](const PsStoreOptions& options) { PsStore::join(options, some_variables()); }));
  CollectiveOptions member;
  member.say = print;
  expect_secured(made_with(member, [](const CollectiveOptions& options) {
    CollectiveStore::join(options, some_variables());
  }));
}

TEST_F(LinkSecurityOfATask, IsReadOnce) {
  cluster_.links.security.loaded = load_security(cluster_.links.security);
  std::filesystem::remove(folder_.path("key"));
  PsOptions ps;
  ps.warn = [](const std::string&) {};
  expect_secured(made_with(ps, [](const PsOptions& options) { serve(options); }));
}

}  // namespace
}  // namespace paceline
