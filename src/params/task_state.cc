#include "params/task_state.h"

#include <algorithm>
#include <cstring>

#include "params/message.h"
#include "params/wire.h"

namespace paceline {
namespace {

constexpr std::size_t kMostRank = 8;

template <typename T>
void put_numbers(WireWriter& writer, const std::map<std::string, T>& numbers) {
  writer.put(std::uint32_t(numbers.size()));
  for (const auto& [name, number] : numbers) {
    writer.put_text(name);
    writer.put(number);
  }
}

template <typename T>
std::map<std::string, T> get_numbers(WireReader& reader) {
  std::map<std::string, T> numbers;
  const std::size_t count = reader.get_count(sizeof(std::uint16_t) + sizeof(T));
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = reader.get_text();
    numbers[name] = reader.get<T>();
  }
  return numbers;
}

NamedTensor get_tensor(WireReader& reader) {
  NamedTensor tensor{reader.get_text(), {}};
  const std::uint8_t dtype = reader.get<std::uint8_t>();
  const std::size_t rank = reader.get<std::uint8_t>();
  if (dtype >= kDTypeCount || rank > kMostRank) reader.fail("an unknown dtype or shape");
  const std::vector<std::int64_t> dims = reader.get_all<std::int64_t>(rank);
  std::int64_t most = std::int64_t(kMaxControlBytes);
  for (const std::int64_t dim : dims) {
    if (dim < 0 || dim > most) reader.fail("a local variable that is too large");
    most /= std::max<std::int64_t>(dim, 1);
  }
  const Shape shape{std::span<const std::int64_t>(dims)};
  const std::vector<std::byte> bytes =
      reader.get_all<std::byte>(std::size_t(shape.elements()) * size_of(DType(dtype)));
  tensor.tensor = Tensor(DType(dtype), shape);
  if (!bytes.empty()) std::memcpy(tensor.tensor.raw(), bytes.data(), bytes.size());
  return tensor;
}

}  // namespace

std::vector<std::byte> encode(const TaskState& state) {
  std::vector<std::byte> bytes;
  WireWriter writer(bytes);
  writer.put(std::int32_t(state.worker));
  writer.put(state.step);
  put_numbers(writer, state.position.numbers);
  put_numbers(writer, state.position.sums);
  writer.put(std::uint32_t(state.local.size()));
  for (const auto& [name, tensor] : state.local) {
    writer.put_text(name);
    writer.put(std::uint8_t(tensor.dtype()));
    writer.put(std::uint8_t(tensor.shape().rank()));
    writer.put_all(tensor.shape().dims());
    writer.put_all(std::span(static_cast<const std::byte*>(tensor.raw()), tensor.bytes()));
  }
  if (bytes.size() > kMaxControlBytes && !state.local.empty()) {
    return encode(TaskState{state.worker, state.step, state.position, {}});
  }
  return bytes;
}

TaskState decode_task_state(std::span<const std::byte> payload) {
  WireReader reader(payload, "task_state");
  TaskState state;
  state.worker = reader.get<std::int32_t>();
  state.step = reader.get<std::int64_t>();
  if (state.step < 0) reader.fail("a step below 0");
  state.position.numbers = get_numbers<std::int64_t>(reader);
  state.position.sums = get_numbers<double>(reader);
  constexpr std::size_t kLeastTensor = 4;
  const std::size_t count = reader.get_count(kLeastTensor);
  for (std::size_t i = 0; i < count; ++i) state.local.push_back(get_tensor(reader));
  reader.end();
  return state;
}

}  // namespace paceline
