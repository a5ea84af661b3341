#include "dashboard/dashboard.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/text_file.h"
#include "dashboard/access_token.h"
#include "dashboard/live_text.h"
#include "dashboard/page.h"
#include "paceline/error.h"

namespace paceline {
namespace {

std::unique_ptr<const HttpsContext> encryption(const Dashboard::Options& options) {
  if (options.certificate.empty()) return nullptr;
  return std::make_unique<const HttpsContext>(HttpsContext::of_server(
      {"--dashboard-cert", options.certificate}, {"--dashboard-key", options.key}));
}

std::unique_ptr<HttpServer> serve(const Address& at, HttpServer::Handler handle,
                                  std::unique_ptr<const HttpsContext> https) {
  try {
    return std::make_unique<HttpServer>(at, std::move(handle), HttpLimits(), std::move(https));
  } catch (const Error& error) {
    throw Error(ErrorCode::kUsage, fmt::format("--dashboard {}: {}", text_of(at), error.what()));
  }
}

}  // namespace

Dashboard::Dashboard(const Options& options, LiveRun run, TimePoint now) : options_(options) {
  renew(run, now);
  server_ = serve(
      options_.at, [this](const HttpRequest& request) { return answer(request); },
      encryption(options_));
  if (!options_.address_file.empty())
    write_text_file("the dashboard's address", options_.address_file, url() + "\n");
}

Dashboard::~Dashboard() {
  server_.reset();
  std::error_code gone_already;
  if (!options_.address_file.empty()) std::filesystem::remove(options_.address_file, gone_already);
}

// The texts are made once for each new state of the run, and not for each request.
void Dashboard::renew(LiveRun& run, TimePoint now) {
  run.add_point(now);
  auto state = std::make_shared<const std::string>(state_json(run, now));
  auto metrics = std::make_shared<const std::string>(metrics_text(run, now));
  const std::lock_guard lock(mutex_);
  state_ = std::move(state);
  metrics_ = std::move(metrics);
}

HttpResponse Dashboard::answer(const HttpRequest& request) const {
  if (!options_.token.empty() && !is_same_token(request.token, options_.token)) {
    return {
        .status = 401,
        .body =
            "This page needs the token of --dashboard-token: /?token=TOKEN behind its address, or "
            "the field Authorization: Bearer TOKEN.\n"};
  }
  if (request.path == "/") return {.type = "text/html; charset=utf-8", .body = whole_page()};
  const std::lock_guard lock(mutex_);
  if (request.path == "/state.json") return {.type = "application/json", .body = *state_};
  if (request.path == "/metrics")
    return {.type = "text/plain; version=0.0.4; charset=utf-8", .body = *metrics_};
  return {.status = 404, .body = "There are /, /state.json and /metrics.\n"};
}

}  // namespace paceline
