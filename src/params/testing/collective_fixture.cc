#include "params/testing/collective_fixture.h"

#include <thread>

#include "net/inproc/inproc_link.h"
#include "params/testing/job_fixture.h"

namespace paceline {

using namespace std::chrono_literals;

namespace {

// Returns an address of this host with a port that is free now.
std::string free_address() {
  const std::unique_ptr<Link> link = make_link("tcp", {});
  return link->listen("127.0.0.1:0", [](const std::shared_ptr<Connection>&) -> Receiver* {
    throw Error(ErrorCode::kUnavailable, "nobody is expected here");
  });
}

}  // namespace

void CollectiveFixture::make_spec(int workers) {
  const bool inproc = GetParam().link == std::string("inproc");
  for (int w = 0; w < workers; ++w) {
    spec_.workers.push_back(inproc ? "worker" + std::to_string(w) + ":1" : free_address());
  }
}

CollectiveOptions CollectiveFixture::options(int worker) {
  CollectiveOptions options;
  options.spec = spec_;
  options.task = {TaskId::Role::kWorker, worker};
  options.cluster_id = "test";
  options.join_timeout = join_timeout_;
  options.share_memory = GetParam().share_memory;
  options.link = GetParam().link;
  if (options.link == "inproc") {
    options.link_factory = [hub = hub_](const LinkOptions& link) {
      return make_inproc_link(link, hub);
    };
  }
  options.say = [this, worker](const std::string& line) {
    {
      const std::lock_guard lock(mutex_);
      said_ += "worker:" + std::to_string(worker) + ": " + line + "\n";
    }
    changed_.notify_all();
  };
  return options;
}

std::future<std::unique_ptr<CollectiveStore>> CollectiveFixture::join_later(
    int worker, const std::vector<VariableSpec>& variables) {
  return std::async(std::launch::async, [this, worker, &variables] {
    return CollectiveStore::join(options(worker), variables);
  });
}

CollectiveFixture::Stores CollectiveFixture::join_all(const std::vector<VariableSpec>& variables) {
  std::vector<std::future<std::unique_ptr<CollectiveStore>>> joining;
  for (std::size_t w = 0; w < spec_.workers.size(); ++w) {
    joining.push_back(join_later(int(w), variables));
  }
  Stores stores;
  for (auto& store : joining) stores.push_back(store.get());
  stores[0]->write(initial_states(variables), 0);
  for (const auto& store : stores) store->wait_initialised();
  return stores;
}

void CollectiveFixture::each(const std::vector<int>& workers,
                             const std::function<void(int)>& work) {
  std::vector<std::future<void>> running;
  running.reserve(workers.size());
  for (const int worker : workers) {
    running.push_back(std::async(std::launch::async, [&work, worker] { work(worker); }));
  }
  for (auto& one : running) one.get();
}

void CollectiveFixture::each(const Stores& stores,
                             const std::function<void(CollectiveStore&)>& work) {
  std::vector<int> all;
  for (std::size_t w = 0; w < stores.size(); ++w) all.push_back(int(w));
  each(all, [&](int worker) { work(*stores[std::size_t(worker)]); });
}

std::string CollectiveFixture::said() {
  const std::lock_guard lock(mutex_);
  return said_;
}

bool CollectiveFixture::wait_said(const std::string& text) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, 60s, [&] { return said_.find(text) != std::string::npos; });
}

}  // namespace paceline
