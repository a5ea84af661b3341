#include "dashboard/dashboard.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/text_file.h"
#include "dashboard/live_text.h"
#include "dashboard/page.h"
#include "paceline/error.h"

namespace paceline {
namespace {

std::unique_ptr<HttpServer> serve(const Address& at, HttpServer::Handler handle) {
  try {
    return std::make_unique<HttpServer>(at, std::move(handle));
  } catch (const Error& error) {
    throw Error(ErrorCode::kUsage, fmt::format("--dashboard {}: {}", text_of(at), error.what()));
  }
}

// A page that cannot be renewed stops no training.
template <typename Part>
void attempt(Part&& part) {
  try {
    part();
  } catch (const std::exception&) {
    return;
  }
}

}  // namespace

Dashboard::Dashboard(const Options& options)
    : options_(options), run_(options.about, options.clock->now()) {
  renew();
  server_ = serve(options_.at, [this](const HttpRequest& request) { return answer(request); });
  if (!options_.address_file.empty())
    write_text_file("the dashboard's address", options_.address_file, url() + "\n");
  ticks_ = std::make_unique<HeartbeatThread>(options_.every, [this] { tick(); });
}

Dashboard::~Dashboard() {
  ticks_.reset();
  server_.reset();
  std::error_code gone_already;
  if (!options_.address_file.empty()) std::filesystem::remove(options_.address_file, gone_already);
}

void Dashboard::ask_with(std::function<void()> ask) {
  const std::lock_guard lock(asking_);
  ask_ = std::move(ask);
}

void Dashboard::tick() {
  attempt([this] { ask(); });
  attempt([this] { renew(); });
}

void Dashboard::ask() {
  const std::lock_guard lock(asking_);
  if (ask_) ask_();
}

// What is served is made once a second, however often it is asked for.
void Dashboard::renew() {
  const std::lock_guard lock(mutex_);
  take_progress(now());
  run_.add_point(now());
  state_ = std::make_shared<const std::string>(state_json(run_, now()));
  metrics_ = std::make_shared<const std::string>(metrics_text(run_, now()));
}

// A task whose words make no sense is shown as one that is not heard of.
void Dashboard::take_progress(TimePoint now) {
  std::vector<ProgressBoard::Heard> heard = options_.board->take();
  heard.push_back({options_.own_task, options_.board->told()});
  for (const ProgressBoard::Heard& each : heard) {
    if (each.text.empty()) continue;
    try {
      run_.heard(each.task, TaskProgress::from_json(each.text), now);
    } catch (const Error&) {
      continue;
    }
  }
}

HttpResponse Dashboard::answer(const HttpRequest& request) const {
  if (request.path == "/") return {.type = "text/html; charset=utf-8", .body = std::string(kPage)};
  const std::lock_guard lock(mutex_);
  if (request.path == "/state.json") return {.type = "application/json", .body = *state_};
  if (request.path == "/metrics")
    return {.type = "text/plain; version=0.0.4; charset=utf-8", .body = *metrics_};
  return {.status = 404, .body = "There are /, /state.json and /metrics.\n"};
}

}  // namespace paceline
