#include "run/log.h"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <memory>
#include <mutex>

#include "base/plain_text.h"
#include "run/program_run.h"

namespace paceline {

namespace {

constexpr const char* kTimePattern = "%Y-%m-%dT%H:%M:%S.%eZ";

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      break;
  }
  return spdlog::level::err;
}

std::string name_of(spdlog::level::level_enum level) {
  if (level == spdlog::level::warn) return "warning";
  const auto name = spdlog::level::to_string_view(level);
  return {name.data(), name.size()};
}

/// Formats a log line as text or as a JSON object. Both have the time in UTC.
class LineFormatter : public spdlog::formatter {
 public:
  explicit LineFormatter(const LogOptions& options)
      : task_(options.task),
        json_(options.json),
        time_(kTimePattern, spdlog::pattern_time_type::utc, "") {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    spdlog::memory_buf_t time;
    time_.format(message, time);
    const std::string line = json_ ? json_line({time.data(), time.size()}, message)
                                   : text_line({time.data(), time.size()}, message);
    out.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<LineFormatter>(
        LogOptions{.level = {}, .json = json_, .task = task_, .fd = -1});
  }

 private:
  std::string text_line(std::string_view time, const spdlog::details::log_msg& message) const {
    std::string line = std::string(time) + " " + name_of(message.level) + " ";
    if (!task_.empty()) line += task_ + ": ";
    std::string text(message.payload.data(), message.payload.size());
    std::ranges::replace_if(
        text, [](char c) { return c == '\n' || c == '\r'; }, ' ');
    return line + plain_text(text) + "\n";
  }
  std::string json_line(std::string_view time, const spdlog::details::log_msg& message) const {
    nlohmann::ordered_json line = {{"time", time}, {"level", name_of(message.level)}};
    if (!task_.empty()) line["task"] = task_;
    line["message"] = std::string(message.payload.data(), message.payload.size());
    // A line is written even if a part of it, such as the name of a file, is not UTF-8.
    return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  }

  const std::string task_;
  const bool json_;
  spdlog::pattern_formatter time_;
};

/// Writes each line with one system call.
class DescriptorSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit DescriptorSink(int fd) : fd_(fd) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    for (const char *at = line.data(), *const end = at + line.size(); at != end;) {
      const ssize_t written = ::write(fd_, at, std::size_t(end - at));
      if (written < 0 && errno != EINTR) return;
      if (written > 0) at += written;
    }
  }
  void flush_() override {}

 private:
  const int fd_;
};

std::string name_of_process(const Cluster& cluster) {
  if (cluster.process == Cluster::Process::kLauncher) return "launcher";
  if (cluster.process == Cluster::Process::kEvaluator) {
    return "evaluator:" + std::to_string(cluster.task.index);
  }
  return cluster.task.str();
}

}  // namespace

LogOptions log_options(const Cluster& cluster, const RunOptions& run) {
  LogOptions options;
  const ProgramRun& told = program_run_of(run);
  options.json = told.log_format == "json";
  if (told.log_level == "debug") options.level = LogLevel::kDebug;
  if (told.log_level == "warning") options.level = LogLevel::kWarning;
  if (told.log_level == "error") options.level = LogLevel::kError;
  // A launcher prefixes text lines with the task's name, so these lines lack the name.
  if (options.json || !cluster.launch.launched) options.task = name_of_process(cluster);
  return options;
}

class Log::Impl {
 public:
  explicit Impl(const LogOptions& options)
      : logger("", std::make_shared<DescriptorSink>(options.fd)) {
    logger.set_level(level_of(options.level));
    logger.set_formatter(std::make_unique<LineFormatter>(options));
  }
  spdlog::logger logger;
  std::mutex mutex;
  std::deque<std::string> lines;
};

Log::Log(const LogOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Log::~Log() = default;

void Log::write(LogLevel level, std::string_view message) const {
  impl_->logger.log(level_of(level), spdlog::string_view_t(message.data(), message.size()));
  if (level != LogLevel::kDebug) remember(message);
}

void Log::remember(std::string_view line) const {
  constexpr std::size_t kMostLines = 12, kMostBytes = 400;
  const std::lock_guard lock(impl_->mutex);
  impl_->lines.push_back(plain_text(std::string(line.substr(0, kMostBytes))));
  if (impl_->lines.size() > kMostLines) impl_->lines.pop_front();
}

std::vector<std::string> Log::remembered() const {
  const std::lock_guard lock(impl_->mutex);
  return {impl_->lines.begin(), impl_->lines.end()};
}

}  // namespace paceline
