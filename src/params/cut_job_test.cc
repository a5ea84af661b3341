// Tests that a connection that is cut is made anew, and that nothing is lost or done twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/address.h"
#include "base/temporary_folder.h"
#include "net/accept/preamble.h"
#include "net/poll/event_fd.h"
#include "net/poll/file_descriptor.h"
#include "net/tcp/name_lookup.h"
#include "net/tcp/tcp_header.h"
#include "net/tcp/tcp_socket.h"
#include "net/wrapped/wrapped_link.h"
#include "params/local/local_store.h"
#include "params/strategy/strategy_kind.h"
#include "params/testing/job_fixture.h"

namespace paceline {
namespace {

/// Stands between tasks over tcp, and cuts their connections between frames. It listens at a port
/// of this host's loopback and passes everything on to `target`. One thread may call it.
class CuttingProxy {
 public:
  explicit CuttingProxy(std::string target);
  ~CuttingProxy();
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;

  const std::string& address() const { return address_; }
  /// Cuts the connection that is about to pass on frame number `first`, counted from 0 over both
  /// directions of all connections. After that, cuts at every `every`-th frame; if `every` is 0,
  /// cuts only once.
  void cut(std::uint64_t first, std::uint64_t every = 0);
  /// The number of frames that were passed on.
  std::uint64_t frames() const { return frames_; }
  std::uint64_t cuts() const { return cuts_; }
  /// While true, new connections are closed at once.
  void set_blocked(bool blocked) { blocked_ = blocked; }

 private:
  struct Flow {
    FileDescriptor from;  // the other direction has it as `to`
    int to = -1;
    std::vector<std::byte> waiting;
    std::size_t preamble = 0;  // bytes of the preamble that are still missing
    bool data = false;         // carries frames
    bool ended = false;        // no more bytes arrive
  };
  /// The two directions of one socket.
  struct Pair {
    Flow caller, target;
    bool ended = false;
  };

  void run();
  void accept_one();
  void pass(Pair& pair, Flow& flow);
  bool pass_frames(Flow& flow);
  bool is_cut();
  static bool write_all(int fd, const std::byte* data, std::size_t bytes);

  const std::string target_;
  FileDescriptor listening_;
  std::string address_;
  EventFd stop_;
  std::atomic<std::uint64_t> frames_{0}, cuts_{0}, next_cut_{~std::uint64_t{0}}, every_{0};
  std::atomic<bool> blocked_{false};
  std::vector<std::unique_ptr<Pair>> pairs_;
  std::thread thread_;
};

constexpr Duration kPatience = std::chrono::seconds(10);
// The index of the byte in a preamble that tells which of a connection's two sockets this is
// (docs/wire.md). The byte is 0 for the socket that carries frames.
constexpr std::size_t kRoleByte = 6;

CuttingProxy::CuttingProxy(std::string target) : target_(std::move(target)) {
  ListeningSocket listening = listen_at(Address{"127.0.0.1", 0});
  listening_ = std::move(listening.fd);
  address_ = listening.address;
  thread_ = std::thread([this] { run(); });
}

CuttingProxy::~CuttingProxy() {
  stop_.raise();
  thread_.join();
}

void CuttingProxy::cut(std::uint64_t first, std::uint64_t every) {
  every_ = every;
  next_cut_ = first;
}

void CuttingProxy::run() {
  while (true) {
    std::vector<pollfd> polled = {{.fd = stop_.fd(), .events = POLLIN, .revents = 0},
                                  {.fd = listening_.get(), .events = POLLIN, .revents = 0}};
    for (const auto& pair : pairs_) {
      for (const Flow* flow : {&pair->caller, &pair->target}) {
        const int fd = flow->ended ? -1 : flow->from.get();
        polled.push_back({.fd = fd, .events = POLLIN, .revents = 0});
      }
    }
    ::poll(polled.data(), polled.size(), -1);
    if (polled[0].revents != 0) return;
    for (std::size_t i = 2; i < polled.size(); ++i) {
      Pair& pair = *pairs_[i / 2 - 1];
      if (polled[i].revents != 0 && !pair.ended) pass(pair, i % 2 == 0 ? pair.caller : pair.target);
    }
    std::erase_if(pairs_, [](const auto& pair) { return pair->ended; });
    if (polled[1].revents != 0) accept_one();
  }
}

void CuttingProxy::accept_one() {
  FileDescriptor caller(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!caller || blocked_) return;
  try {
    const Deadline deadline = Deadline::after(kPatience);
    FileDescriptor target = dial(look_up(parse_address(target_), deadline), target_, deadline);
    set_up_socket(caller.get());
    auto pair = std::make_unique<Pair>();
    pair->caller.to = target.get();
    pair->target.to = caller.get();
    pair->caller.from = std::move(caller);
    pair->target.from = std::move(target);
    pair->caller.preamble = kPreambleBytes;
    pairs_.push_back(std::move(pair));
  } catch (const Error&) {
    // Nobody listens at the target any more. The caller notices that its own socket ends.
  }
}

bool CuttingProxy::write_all(int fd, const std::byte* data, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t sent = ::send(fd, data, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) return false;
    if (sent < 0) {
      pollfd room{fd, POLLOUT, 0};
      ::poll(&room, 1, 1000);
      continue;
    }
    data += sent;
    bytes -= std::size_t(sent);
  }
  return true;
}

void CuttingProxy::pass(Pair& pair, Flow& flow) {
  std::byte bytes[1 << 16];
  const ssize_t read = ::recv(flow.from.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
  if (read < 0 && errno == EAGAIN) return;
  if (read <= 0) {
    flow.ended = true;
    pair.ended =
        read < 0 || ::shutdown(flow.to, SHUT_WR) != 0 || (pair.caller.ended && pair.target.ended);
    return;
  }
  std::size_t begin = 0;
  if (flow.preamble > 0) {
    begin = std::min(flow.preamble, std::size_t(read));
    const std::size_t role = kRoleByte - (kPreambleBytes - flow.preamble);
    if (role < begin) flow.data = pair.target.data = bytes[role] == std::byte{0};
    flow.preamble -= begin;
    if (!write_all(flow.to, bytes, begin)) pair.ended = true;
  }
  if (!flow.data) {
    pair.ended = pair.ended || !write_all(flow.to, bytes + begin, std::size_t(read) - begin);
    return;
  }
  flow.waiting.insert(flow.waiting.end(), bytes + begin, bytes + read);
  pair.ended = pair.ended || !pass_frames(flow);
}

// Passes on whole frames only. Returns false when the connection is cut.
bool CuttingProxy::pass_frames(Flow& flow) {
  std::size_t begin = 0;
  while (flow.waiting.size() - begin >= kTcpHeaderBytes) {
    TcpHeaderBytes header;
    std::copy_n(flow.waiting.data() + begin, header.size(), header.data());
    const std::size_t bytes = kTcpFramingBytes + decode_tcp(header).payload_bytes;
    if (flow.waiting.size() - begin < bytes) break;
    if (is_cut()) return false;
    if (!write_all(flow.to, flow.waiting.data() + begin, bytes)) return false;
    begin += bytes;
  }
  flow.waiting.erase(flow.waiting.begin(), flow.waiting.begin() + std::ptrdiff_t(begin));
  return true;
}

bool CuttingProxy::is_cut() {
  const std::uint64_t frame = frames_;
  if (frame < next_cut_) {
    ++frames_;
    return false;
  }
  next_cut_ = every_ == 0 ? ~std::uint64_t{0} : frame + every_;
  ++cuts_;
  return true;
}

using namespace std::chrono_literals;
using ::testing::HasSubstr;

std::vector<VariableSpec> cut_variables() {
  return {{.name = "w", .shape = {601, 503}, .rule = Adam{.learning_rate = 0.01f}},
          {.name = "b", .shape = {7}, .rule = Sgd{}},
          {.name = "embedding", .shape = {90, 7}, .rule = Sgd{}, .sparse = true}};
}

class CutJob : public JobFixture {
 protected:
  /// Serves at free ports of this host. Workers reach each ps through a proxy of its own.
  void start_behind_proxies(int num_ps, int num_workers) {
    make_spec(num_ps, num_workers);
    for (int i = 0; i < num_ps; ++i) spec_.ps[std::size_t(i)] = "127.0.0.1:0";
    for (int i = 0; i < num_ps; ++i) {
      std::promise<std::string> address;
      PsOptions options = ps_options(i);
      options.link_factory = nullptr;
      options.link = "tcp";
      options.listening = [&](const std::string& at) { address.set_value(at); };
      ps_tasks_.push_back(start_ps(options));
      proxies_.push_back(std::make_unique<CuttingProxy>(address.get_future().get()));
    }
    for (int i = 0; i < num_ps; ++i) spec_.ps[std::size_t(i)] = proxies_[std::size_t(i)]->address();
  }
  PsStoreOptions tcp_options(int worker) {
    PsStoreOptions options = store_options(worker);
    options.link_factory = nullptr;
    options.link = "tcp";
    return options;
  }
  std::uint64_t cuts() const {
    std::uint64_t all = 0;
    for (const auto& proxy : proxies_) all += proxy->cuts();
    return all;
  }

  std::vector<std::unique_ptr<CuttingProxy>> proxies_;
};

/// Everything that a worker does with its ps tasks, from the hello to the goodbye.
class WholeJob {
 public:
  explicit WholeJob(PsStore& store, bool clipped) : store_(store), clipped_(clipped) {}

  std::vector<std::vector<float>> run(const std::string& folder) {
    const std::vector<TaskState> states = {{.worker = 0, .step = 0, .position = {}, .local = {}}};
    store_.restore(states);
    store_.write(initial_states(store_.variables()), 0);
    StepDriver driver(store_, clipped_);
    for (int step = 0; step < 4; ++step) EXPECT_EQ(driver.step(), step + 1);
    const auto middle = everything(store_);
    save(folder);
    driver.knows_next_rows = false;
    for (int step = 4; step < 6; ++step) EXPECT_EQ(driver.step(), step + 1);
    auto all = everything(store_);
    store_.set_done();
    EXPECT_TRUE(store_.wait_all_done(Deadline::after(60s)));
    store_.goodbye();
    return all;
  }

 private:
  void save(const std::string& folder) {
    std::filesystem::create_directories(folder);
    EXPECT_TRUE(store_.prepare_saving(folder).empty());
    store_.mark();
    EXPECT_EQ(store_.write_shards(folder).global_step, 4);
  }

  PsStore& store_;
  const bool clipped_;
};

std::vector<std::vector<float>> uncut(bool clipped) {
  const auto local = make_local_store(cut_variables(), nullptr, nullptr);
  local->write(initial_states(local->variables()), 0);
  StepDriver driver(*local, clipped);
  for (int step = 0; step < 6; ++step) driver.step();
  return everything(*local);
}

class CutEverywhere : public CutJob {
 protected:
  /// Runs a job whose connections are cut. Returns how many frames the job took.
  std::uint64_t run_cut(std::uint64_t first, std::uint64_t every, bool clipped,
                        const std::vector<std::vector<float>>& expected) {
    spec_ = {};
    proxies_.clear();
    ps_tasks_.clear();
    start_behind_proxies(1, 1);
    proxies_.front()->cut(first, every);
    SCOPED_TRACE("cut at frame " + std::to_string(first));
    try {
      const auto store = PsStore::join(tcp_options(0), cut_variables());
      const TemporaryFolder folder;
      EXPECT_EQ(WholeJob(*store, clipped).run(folder.path()), expected);
      EXPECT_EQ(ps_tasks_.front().get().applied, 6);
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
    cuts_ += cuts();
    return proxies_.front()->frames();
  }
  /// Runs the job `times` times, and cuts each run once, at places that are spread over the job.
  /// Some more runs are cut again and again.
  void cut_at(std::uint64_t times) {
    for (const bool clipped : {false, true}) {
      const auto expected = uncut(clipped);
      const std::uint64_t frames = run_cut(~std::uint64_t{0}, 0, clipped, expected);
      ASSERT_GT(frames, 60u);
      for (std::uint64_t i = 0; i < times; ++i) {
        run_cut(i * frames / times, 0, clipped, expected);
        ASSERT_FALSE(HasFailure()) << said();
      }
      for (const std::uint64_t every : {5, 9, 20}) {
        run_cut(every, every, clipped, expected);
        ASSERT_FALSE(HasFailure()) << said();
      }
    }
  }
  std::uint64_t cuts_ = 0;
};

TEST_F(CutEverywhere, TheJobEndsAsIfItHadNotBeenCut) {
  cut_at(15);
  EXPECT_GT(cuts_, 60u);
  EXPECT_THAT(said(), HasSubstr("lost worker:0 at "));
  EXPECT_THAT(said(), HasSubstr("; it may come back within 30 s (--reconnect-timeout)"));
  EXPECT_THAT(said(), HasSubstr("worker:0 is back after "));
  EXPECT_THAT(said(), HasSubstr("lost ps:0 at "));
  EXPECT_THAT(said(), HasSubstr(" is back after "));
}

// Tests that every contribution of each worker is applied once, and counts once. The cuts begin
// with the second steps. If rounds went on without a worker before that, the worker's first
// contribution might be made from values of several rounds, and would then count nowhere.
class CutWorkers : public CutJob, public ::testing::WithParamInterface<AggregationKind> {
 protected:
  /// With the addresses of `spec`, a ps task reaches ps 0 through the proxy, too.
  static AggregationSpec how(const ClusterSpec& spec) {
    if (GetParam() == AggregationKind::kRounds) return rounds_of(spec, 0, LateContribution::kFold);
    return {GetParam(), GetParam() == AggregationKind::kBounded ? 2 : 0};
  }
};
INSTANTIATE_TEST_SUITE_P(Strategies, CutWorkers, ::testing::ValuesIn(kAggregationKinds));

TEST_P(CutWorkers, MakeAllTheirStepsOnTwoPsTasks) {
  constexpr int kWorkers = 3, kSteps = 15;
  start_behind_proxies(2, kWorkers);
  std::vector<std::future<std::int64_t>> workers;
  workers.reserve(kWorkers);
  std::atomic<std::int64_t> last{0};
  std::latch begun(kWorkers);
  for (int i = 0; i < kWorkers; ++i) {
    workers.push_back(std::async(std::launch::async, [&, i] {
      PsStoreOptions options = tcp_options(i);
      options.aggregation = how(options.spec);
      const auto store = PsStore::join(options, cut_variables());
      if (i == 0) store->write(initial_states(store->variables()), 0);
      store->wait_initialised();
      StepDriver driver(*store, false);
      std::int64_t global_step = driver.step();
      begun.arrive_and_wait();
      if (i == 0) {
        for (const auto& proxy : proxies_) proxy->cut(proxy->frames() + 5, 31);
      }
      for (int step = 1; step < kSteps; ++step) global_step = driver.step();
      store->set_done();
      store->goodbye();
      return global_step;
    }));
  }
  for (auto& worker : workers) last = std::max(last.load(), worker.get());
  if (GetParam() == AggregationKind::kRounds) {
    EXPECT_GE(last, kSteps);
  } else {
    EXPECT_EQ(last, kWorkers * kSteps);
  }
  for (auto& ps : ps_tasks_) EXPECT_EQ(ps.get().applied, kWorkers * kSteps);
  EXPECT_GT(cuts(), 10u);
}

TEST_F(CutJob, APsThatDoesNotComeBackIsLostAndTheFlagNamed) {
  reconnect_timeout_ = 500ms;
  start_behind_proxies(1, 1);
  const auto store = PsStore::join(tcp_options(0), cut_variables());
  store->write(initial_states(store->variables()), 0);
  StepDriver driver(*store, false);
  driver.step();
  proxies_.front()->set_blocked(true);
  proxies_.front()->cut(proxies_.front()->frames());
  try {
    for (int step = 0; step < 1000; ++step) driver.step();
    FAIL() << "steps without a ps";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kAborted);
    EXPECT_THAT(error.what(), HasSubstr("lost ps:0 at "));
    EXPECT_THAT(error.what(),
                HasSubstr("; it did not come back within 0.5 s (--reconnect-timeout)"));
  }
  EXPECT_TRUE(wait_said("it did not come back within 0.5 s (--reconnect-timeout)"));
}

/// A connection that closes itself at every `every`-th frame, counted over all connections, instead
/// of sending the frame.
class CuttingConnection : public ForwardingConnection {
 public:
  CuttingConnection(std::shared_ptr<Connection> connection, std::atomic<int>& frames, int every)
      : ForwardingConnection(std::move(connection)), frames_(frames), every_(every) {}
  void send(const FrameHeader& header, std::span<const std::byte> payload, void (*sent)(void*),
            void* context) override {
    if (++frames_ % every_ == 0) close(Deadline::after(Duration()));
    ForwardingConnection::send(header, payload, sent, context);
  }

 private:
  std::atomic<int>& frames_;
  const int every_;
};

struct SharedCase {
  std::string link;
  bool reread;  // the worker reads a copy that the ps makes for it
};
class CutSharedMemory : public CutJob, public ::testing::WithParamInterface<SharedCase> {
 protected:
  std::function<std::unique_ptr<Link>(const LinkOptions&)> cutting_links(int every) {
    const auto make = GetParam().link == "inproc"
                          ? link_factory()
                          : [](const LinkOptions& options) { return make_link("shm", options); };
    const auto receiver = [](Receiver& to, const std::string&) {
      return std::make_unique<ForwardingReceiver>(to);
    };
    const auto connection = [this, every](std::shared_ptr<Connection> to, const std::string&) {
      return std::make_shared<CuttingConnection>(std::move(to), frames_, every);
    };
    return [=](const LinkOptions& options) {
      return std::make_unique<WrappedLink>(
          make(options), LinkWrapping{.receiver = receiver, .connection = connection});
    };
  }
  std::atomic<int> frames_{0};
};
INSTANTIATE_TEST_SUITE_P(Links, CutSharedMemory,
                         ::testing::Values(SharedCase{"shm", false}, SharedCase{"shm", true},
                                           SharedCase{"inproc", false}, SharedCase{"inproc", true}),
                         [](const auto& one) {
                           return one.param.link + (one.param.reread ? "_in_copies" : "_in_place");
                         });

TEST_P(CutSharedMemory, GivesTheBitsOfTheLocalStore) {
  make_spec(1, 2);
  if (GetParam().link == "shm") spec_.ps = {"127.0.0.1:0"};
  PsOptions serving = ps_options(0);
  std::promise<std::string> address;
  if (GetParam().link == "shm") {
    serving.link_factory = nullptr;
    serving.link = "shm";
    serving.listening = [&](const std::string& at) { address.set_value(at); };
  }
  ps_tasks_.push_back(start_ps(serving));
  if (GetParam().link == "shm") spec_.ps = {address.get_future().get()};
  PsStoreOptions options = store_options(0);
  options.link_factory = cutting_links(9);
  const auto store = PsStore::join(options, cut_variables());
  const auto local = make_local_store(cut_variables(), nullptr, nullptr);
  store->write(initial_states(store->variables()), 0);
  local->write(initial_states(local->variables()), 0);
  StepDriver far(*store, false, GetParam().reread), near(*local, false);
  for (int step = 0; step < 20; ++step) ASSERT_EQ(far.step(), near.step());
  EXPECT_EQ(everything(*store), everything(*local));
  EXPECT_GT(frames_, 60);
  EXPECT_THAT(said(), HasSubstr("worker:0 is back after "));
  store->goodbye();
}

// scripts/slow_checks runs it.
TEST_F(CutEverywhere, DISABLED_FiveHundredTimes) {
  cut_at(250);
  EXPECT_GT(cuts_, 500u);
}

}  // namespace

}  // namespace paceline
