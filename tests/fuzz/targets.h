// The fuzz targets: functions that read bytes from outside the process. Each of them must return
// for any bytes; the reader inside may throw only Error. scripts/fuzz runs them on bytes that
// libFuzzer invents, and an ordinary test on those of tests/fuzz/corpus/NAME/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace paceline::testing {

using Bytes = std::span<const std::uint8_t>;

/// A target catches only an Error whose code does not mean a bug of ours. Any other exception ends
/// the fuzzer.
void fuzz_safetensors(Bytes bytes);       // a file's bytes
void fuzz_checkpoint_index(Bytes bytes);  // an index.json
void fuzz_event_file(Bytes bytes);        // a file's bytes
void fuzz_event(Bytes bytes);             // a record's data: libFuzzer finds no checksums
void fuzz_config(Bytes bytes);            // a file for --config, read as JSON and as TOML
void fuzz_tf_config(Bytes bytes);         // $TF_CONFIG
void fuzz_preamble(Bytes bytes);          // the first bytes of a socket, and an offer
void fuzz_frames(Bytes bytes);            // all bytes of a socket
void fuzz_tls(Bytes bytes);               // the first bytes of an encrypted socket, and key files
void fuzz_messages(Bytes bytes);          // a message's type and payload
void fuzz_records(Bytes bytes);           // a file of records of one length
void fuzz_image(Bytes bytes);             // a JPEG or PNG file
void fuzz_ps(Bytes bytes);                // a script of several peers of a ps (ps_script.h)

struct FuzzTarget {
  std::string_view name;  // also the name of its folder in corpus/
  void (*run)(Bytes);
};

/// All of them; cmake/Fuzzing.cmake has the same names.
constexpr FuzzTarget kFuzzTargets[] = {
    {"safetensors", fuzz_safetensors},
    {"checkpoint_index", fuzz_checkpoint_index},
    {"event_file", fuzz_event_file},
    {"event", fuzz_event},
    {"config", fuzz_config},
    {"tf_config", fuzz_tf_config},
    {"preamble", fuzz_preamble},
    {"frames", fuzz_frames},
    {"tls", fuzz_tls},
    {"messages", fuzz_messages},
    {"records", fuzz_records},
    {"image", fuzz_image},
    {"ps", fuzz_ps},
};

}  // namespace paceline::testing
