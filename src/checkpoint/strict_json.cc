#include "checkpoint/strict_json.h"

#include <fmt/format.h>

#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/failure_text.h"
#include "checkpoint/data_loss.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using Json = nlohmann::json;

// Follows the parser's events, and refuses some texts that the parser would accept.
class Watch {
 public:
  Watch(const std::string& what, int depth) : what_(what), depth_(depth) {}

  bool operator()(int /*depth*/, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      if (int(names_.size()) == depth_) data_loss(what_, fmt::format("more than {} deep", depth_));
      names_.emplace_back();
    } else if (event == Event::object_end || event == Event::array_end) {
      names_.pop_back();
    } else if (event == Event::key && !names_.back().insert(parsed.get<std::string>()).second) {
      data_loss(what_, fmt::format("{} is there twice", parsed.dump()));
    }
    return true;
  }

 private:
  const std::string& what_;
  const int depth_;
  std::vector<std::set<std::string>> names_;  // of the objects around this event
};

}  // namespace

Json parse_strict(std::string_view text, const std::string& what, int depth) {
  Watch watch(what, depth);
  try {
    Json value = Json::parse(text, std::ref(watch));
    if (!value.is_object()) data_loss(what, "it is no JSON object");
    return value;
  } catch (const Json::exception& error) {
    data_loss(what, failure_text(error));
  }
}

const Json& member(const Json& object, const char* name, const std::string& what) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || found == object.end()) data_loss(what, fmt::format("no \"{}\"", name));
  return *found;
}

std::int64_t whole_number(const Json& value, const std::string& what) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMost) {
    data_loss(what, "a whole number from 0 to 2^63 - 1 is expected");
  }
  return value.get<std::int64_t>();
}

std::string text_of(const Json& value, const std::string& what) {
  if (!value.is_string()) data_loss(what, "a text is expected");
  return value.get<std::string>();
}

Shape shape_of(const Json& value, const std::string& what) {
  if (!value.is_array()) data_loss(what, "its shape is no list");
  if (value.size() > Shape::kMaxRank) {
    data_loss(what,
              fmt::format("{} dimensions; at most {} are known", value.size(), Shape::kMaxRank));
  }
  std::vector<std::int64_t> dims;
  for (const Json& dim : value) dims.push_back(whole_number(dim, what + ", shape"));
  try {
    return Shape(std::span<const std::int64_t>(dims));
  } catch (const Error& error) {
    data_loss(what, error.what());
  }
}

}  // namespace paceline
