#include "data/data_position.h"

#include <fmt/format.h>

#include <map>

#include "paceline/error.h"

namespace paceline {
namespace {

using Numbers = std::map<std::string, std::int64_t>;

std::int64_t number_or(const Numbers& numbers, const std::string& name, std::int64_t otherwise) {
  const auto found = numbers.find(name);
  return found != numbers.end() ? found->second : otherwise;
}

}  // namespace

DataPlace data_place(const TaskPosition& position, const std::string& name, std::int64_t size) {
  const Numbers& numbers = position.numbers;
  const std::int64_t epoch = number_or(numbers, name + ".epoch", 0);
  const std::int64_t record = number_or(numbers, name + ".record", 0);
  const std::int64_t before = number_or(numbers, name + ".size", size);
  constexpr std::int64_t kMostEpochs = 1'000'000'000;
  if (epoch < 0 || epoch > kMostEpochs || before < 1 || record < 0 || record > before) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("there is no place in the data at record {} of {} of epoch {} ({}.*)",
                            record, before, epoch, name));
  }
  DataPlace place;
  if (before != size) {
    place.next = epoch * size + std::int64_t(double(record) / double(before) * double(size));
    return place;
  }
  place.next = epoch * size + record;
  for (std::int64_t i = number_or(numbers, name + ".late", 0); i > 0; --i) {
    const std::int64_t late = number_or(numbers, fmt::format("{}.late.{}", name, i), -1);
    if (late < 0 || late >= place.next) break;
    place.late.insert(late);
  }
  return place;
}

void tell_place(const DataPlace& place, const std::string& name, std::int64_t size,
                TaskPosition& to) {
  to.numbers[name + ".epoch"] = place.next / size;
  to.numbers[name + ".record"] = place.next % size;
  to.numbers[name + ".size"] = size;
  to.numbers[name + ".late"] = std::int64_t(place.late.size());
  int i = 0;
  for (const std::int64_t late : place.late) {
    to.numbers[fmt::format("{}.late.{}", name, ++i)] = late;
  }
}

}  // namespace paceline
