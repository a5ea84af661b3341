#include "predict/cipher_rate.h"

#include <openssl/evp.h>
#include <time.h>

#include <array>
#include <memory>
#include <vector>

namespace paceline {
namespace {

constexpr std::size_t kRecordBytes = 16 << 10;
constexpr int kRecordsAtOnce = 32;
constexpr double kCipherSeconds = 0.01;

double thread_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

}  // namespace

double measured_cipher_rate() {
  const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> cipher(
      EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  const std::array<unsigned char, 16> key{}, nonce{};
  std::array<unsigned char, 16> tag;
  std::vector<unsigned char> record(kRecordBytes), encrypted(kRecordBytes);
  EVP_EncryptInit_ex(cipher.get(), EVP_aes_128_gcm(), nullptr, key.data(), nonce.data());
  const double begun = thread_time();
  double bytes = 0, seconds = 0;
  do {
    for (int i = 0; i < kRecordsAtOnce; ++i) {
      int written = 0;
      EVP_EncryptInit_ex(cipher.get(), nullptr, nullptr, nullptr, nonce.data());
      EVP_EncryptUpdate(cipher.get(), encrypted.data(), &written, record.data(), int(kRecordBytes));
      EVP_EncryptFinal_ex(cipher.get(), encrypted.data() + written, &written);
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, int(tag.size()), tag.data());
      bytes += kRecordBytes;
    }
    seconds = thread_time() - begun;
  } while (seconds < kCipherSeconds);
  return bytes / seconds;
}

}  // namespace paceline
