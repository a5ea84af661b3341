// Measures how fast a core encrypts.
#pragma once

namespace paceline {

/// Returns the bytes per second that one core encrypts as links do (AES-128-GCM, records of 16
/// KiB); decrypting takes as long. Takes about 10 ms of this thread's time.
double measured_cipher_rate();

}  // namespace paceline
