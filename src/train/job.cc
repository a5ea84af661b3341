#include "train/job.h"

#include <fmt/format.h>

#include <cstdio>

#include "cluster/interrupt.h"
#include "paceline/error.h"
#include "params/local_store.h"

namespace paceline {
namespace {

// What a quiet worker waits for is worth a line only when the user would wonder.
constexpr Duration kQuietWait = std::chrono::seconds(5);
// Long enough to cost nothing, short enough for Ctrl-C.
constexpr Duration kInterruptCheck = std::chrono::milliseconds(250);

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

Duration from_seconds(double seconds) { return Duration(std::int64_t(seconds * 1e9)); }

}  // namespace

Job::Job(const Options& options, std::vector<VariableSpec> variables)
    : cluster_(options.cluster), interrupt_(options.run.interrupt) {
  if (cluster_.task.job == TaskId::Job::kPs) {
    throw Error(ErrorCode::kUsage, cluster_.task.str() +
                                       " serves, it does not train: a session is "
                                       "for workers");
  }
  if (cluster_.distributed()) {
    join(options, std::move(variables));
  } else {
    store_ =
        make_local_store(std::move(variables), options.pool, options.account, options.timeline);
  }
}

void Job::join(const Options& options, std::vector<VariableSpec> variables) {
  ServerStoreOptions server;
  server.spec = cluster_.spec;
  server.task = cluster_.task;
  server.cluster_id = cluster_.cluster_id;
  server.link = cluster_.link;
  server.join_timeout = from_seconds(cluster_.join_timeout_s);
  server.spin = options.spin;
  server.torn_free = cluster_.torn_free;
  server.wire = cluster_.wire;
  server.error_feedback = cluster_.error_feedback;
  server.last_step = options.run.steps.value_or(0);
  server.timeline = options.timeline;
  server.say = say;
  if (options.run.quiet) server.say_after = kQuietWait;
  server.check_interrupt = [this] { check_interrupt(); };
  std::unique_ptr<ServerStore> joined = ServerStore::join(server, std::move(variables));
  server_ = joined.get();
  store_ = std::move(joined);
  if (cluster_.wire != DType::kFloat32 && cluster_.is_chief() && !server_->rounds()) {
    say("--wire bfloat16 rounds nothing: all parameter servers share this worker's memory, and no "
        "values travel (--link tcp sends them)");
  }
  if (!cluster_.show_placement) return;
  fmt::print("{}", server_->placement_text());
  std::fflush(stdout);
}

Job::~Job() {
  if (server_ == nullptr || failed_) return;
  try {
    server_->set_done();
    server_->goodbye();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: could not say goodbye: {}\n", cluster_.task.str(), error.what());
  }
}

void Job::initialise(const std::function<std::vector<VariableState>()>& make_values) {
  if (!cluster_.is_chief()) {
    server_->wait_initialised();
  } else if (!store_->initialised()) {
    store_->write(make_values(), 0);
  }
}

void Job::finish_training() {
  if (server_ == nullptr) return;
  server_->set_done();
  while (!server_->wait_all_done(Deadline::after(kInterruptCheck))) check_interrupt();
}

void Job::check_interrupt() const {
  if (interrupt_ != nullptr && interrupt_->interrupted()) {
    throw Error(ErrorCode::kCancelled, cluster_.task.str() + " was interrupted");
  }
}

}  // namespace paceline
