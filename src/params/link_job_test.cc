#include <gtest/gtest.h>

#include "params/local/local_store.h"
#include "params/testing/job_fixture.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;

class LinkJob : public JobFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  /// Serves at a free port of this host, in a thread. The spec then names the port.
  void start_linked_ps() {
    spec_ = {.ps = {"127.0.0.1:0"}, .workers = {"127.0.0.1:1"}};
    std::promise<std::string> address;
    PsOptions options = ps_options(0);
    options.link_factory = nullptr;
    options.link = GetParam();
    options.listening = [&](const std::string& at) { address.set_value(at); };
    ps_tasks_.push_back(start_ps(options));
    spec_.ps = {address.get_future().get()};
  }
  std::unique_ptr<PsStore> join_linked(const std::vector<VariableSpec>& variables) {
    PsStoreOptions options = store_options(0);
    options.link_factory = nullptr;
    options.link = GetParam();
    return PsStore::join(options, variables);
  }
};

INSTANTIATE_TEST_SUITE_P(Links, LinkJob, testing::Values("tcp", "shm"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(LinkJob, GivesTheBitsOfTheLocalStore) {
  const std::vector<VariableSpec> variables = {{.name = "w",
                                                .shape = {601, 503},
                                                .rule = Adam{.learning_rate = 0.01f},
                                                .average_decay = 0.75f},
                                               {.name = "embedding",
                                                .shape = {90, 7},
                                                .rule = Sgd{},
                                                .average_decay = 0.5f,
                                                .sparse = true}};
  start_linked_ps();
  const auto remote = join_linked(variables);
  const auto local = make_local_store(variables, nullptr, nullptr);
  remote->write(initial_states(variables), 0);
  local->write(initial_states(variables), 0);
  StepDriver far(*remote, true), near(*local, true);
  for (int step = 0; step < 20; ++step) EXPECT_EQ(far.step(), near.step());
  EXPECT_EQ(everything(*remote), everything(*local));
  const StoreAccount account = remote->account();
  if (GetParam() == std::string("tcp")) {
    EXPECT_GT(account.bytes_sent, std::int64_t{20} * 601 * 503 * 4);
  }
  EXPECT_GT(account.transfer.count(), 0);
  remote->goodbye();
  EXPECT_EQ(ps_tasks_.front().get().applied, 20);
}

}  // namespace
}  // namespace paceline
