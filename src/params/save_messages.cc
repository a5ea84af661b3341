#include "params/save_messages.h"

#include "params/wire.h"

namespace paceline {

std::vector<std::byte> encode(const SavedShard& saved) {
  std::vector<std::byte> bytes;
  WireWriter writer(bytes);
  writer.put_text(std::string_view(saved.error).substr(0, 0xffff));
  writer.put(saved.bytes);
  writer.put(saved.checksum);
  writer.put(saved.global_step);
  writer.put(std::uint32_t(saved.workers.size()));
  for (const SavedShard::Worker& worker : saved.workers) {
    writer.put(worker.applied);
    writer.put(std::uint8_t(worker.asked));
  }
  return bytes;
}

SavedShard decode_saved_shard(std::span<const std::byte> payload) {
  WireReader reader(payload, "saved");
  SavedShard saved;
  saved.error = reader.get_text();
  saved.bytes = reader.get<std::uint64_t>();
  saved.checksum = reader.get<std::uint32_t>();
  saved.global_step = reader.get<std::int64_t>();
  saved.workers.resize(reader.get_count(sizeof(std::int64_t) + 1));
  for (SavedShard::Worker& worker : saved.workers) {
    worker.applied = reader.get<std::int64_t>();
    worker.asked = reader.get<std::uint8_t>() != 0;
  }
  reader.end();
  return saved;
}

std::vector<std::byte> encode(const FindFile& find) {
  std::vector<std::byte> bytes;
  WireWriter writer(bytes);
  writer.put_text(find.path);
  writer.put_text(find.content);
  return bytes;
}

FindFile decode_find_file(std::span<const std::byte> payload) {
  WireReader reader(payload, "find_file");
  FindFile find;
  find.path = reader.get_text();
  find.content = reader.get_text();
  reader.end();
  return find;
}

std::vector<std::byte> encode(const Initialised& initialised) {
  std::vector<std::byte> bytes;
  WireWriter writer(bytes);
  writer.put(initialised.global_step);
  writer.put(initialised.own_step);
  return bytes;
}

Initialised decode_initialised(std::span<const std::byte> payload) {
  WireReader reader(payload, "initialised");
  Initialised initialised;
  initialised.global_step = reader.get<std::int64_t>();
  initialised.own_step = reader.get<std::int64_t>();
  reader.end();
  if (initialised.own_step < 0 || initialised.global_step < 0) reader.fail("a step below 0");
  return initialised;
}

}  // namespace paceline
