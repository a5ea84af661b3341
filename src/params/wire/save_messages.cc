#include "params/wire/save_messages.h"

#include "params/wire/record_fields.h"

namespace paceline {

void fields(auto& wire, Of<SavedShard::Worker> auto& worker) { wire(worker.applied, worker.asked); }

void fields(auto& wire, Of<SavedShard> auto& saved) {
  wire(saved.error, saved.bytes, saved.checksum, saved.global_step, saved.workers, saved.unused);
}

void fields(auto& wire, Of<FindFile> auto& find) { wire(find.path, find.content); }

void fields(auto& wire, Of<Initialised> auto& initialised) {
  wire(initialised.global_step, initialised.own_step);
}

std::vector<std::byte> encode(const SavedShard& saved) {
  if (saved.error.size() <= kMostTextBytes) return encode_fields(saved);
  SavedShard shorter = saved;
  shorter.error.resize(kMostTextBytes);
  return encode_fields(shorter);
}

std::vector<std::byte> encode(const FindFile& find) { return encode_fields(find); }

std::vector<std::byte> encode(const Initialised& initialised) { return encode_fields(initialised); }

SavedShard decode_saved_shard(std::span<const std::byte> payload) {
  return decode_fields<SavedShard>(payload, "saved");
}

FindFile decode_find_file(std::span<const std::byte> payload) {
  return decode_fields<FindFile>(payload, "find_file");
}

Initialised decode_initialised(std::span<const std::byte> payload) {
  WireReader reader(payload, "initialised");
  Initialised initialised;
  FieldReader{reader}(initialised);
  reader.end();
  if (initialised.own_step < 0 || initialised.global_step < 0) reader.fail("a step below 0");
  return initialised;
}

}  // namespace paceline
