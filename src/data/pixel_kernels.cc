#include "data/pixel_kernels.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/pixel_kernels.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace paceline {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Integers = hn::RebindToSigned<Floats>;
using Bytes = hn::Rebind<std::uint8_t, Floats>;
using OneFloat = hn::CappedTag<float, 1>;

template <class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> integers_at(D, const std::uint8_t* pixels) {
  const hn::Rebind<std::uint8_t, D> bytes;
  return hn::PromoteTo(hn::RebindToSigned<D>(), hn::LoadU(bytes, pixels));
}

template <class D>
HWY_INLINE hn::Vec<D> line_at(D d, const std::uint8_t* pixels, PixelLine line) {
  const auto distance = hn::Sub(hn::ConvertTo(d, integers_at(d, pixels)), hn::Set(d, line.center));
  return hn::MulAdd(distance, hn::Set(d, line.scale), hn::Set(d, line.offset));
}

// This many squares of at most 255² add up to a sum that still fits a lane of 32 bits.
constexpr std::size_t kMostInLane = 32768;

PixelSums sums_of_block(const std::uint8_t* pixels, std::size_t count) {
  const Integers d;
  const std::size_t lanes = hn::Lanes(d);
  auto sum = hn::Zero(d), squares = hn::Zero(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto x = integers_at(Floats(), pixels + i);
    sum = hn::Add(sum, x);
    squares = hn::Add(squares, hn::Mul(x, x));
  }
  PixelSums sums;
  HWY_ALIGN std::int32_t each[2][HWY_MAX_BYTES / sizeof(std::int32_t)];
  hn::Store(sum, d, each[0]);
  hn::Store(squares, d, each[1]);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    sums.sum += each[0][lane];
    sums.squares += each[1][lane];
  }
  for (; i < count; ++i) {
    sums.sum += pixels[i];
    sums.squares += std::int64_t(pixels[i]) * pixels[i];
  }
  return sums;
}

PixelSums SumsOfPixels(std::span<const std::uint8_t> pixels) {
  PixelSums all;
  const std::size_t block = kMostInLane * hn::Lanes(Integers());
  for (std::size_t i = 0; i < pixels.size(); i += block) {
    const PixelSums some = sums_of_block(pixels.data() + i, std::min(block, pixels.size() - i));
    all.sum += some.sum;
    all.squares += some.squares;
  }
  return all;
}

void ApplyLine(std::span<const std::uint8_t> pixels, PixelLine line, float* values) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= pixels.size(); i += lanes) {
    hn::StoreU(line_at(d, pixels.data() + i, line), d, values + i);
  }
  for (; i < pixels.size(); ++i) {
    hn::StoreU(line_at(OneFloat(), pixels.data() + i, line), OneFloat(), values + i);
  }
}

template <class D>
HWY_INLINE void store_pixels(D d, const std::uint8_t* plane, std::size_t distance,
                             const PixelLine* lines, float* values) {
  hn::StoreInterleaved3(line_at(d, plane, lines[0]), line_at(d, plane + distance, lines[1]),
                        line_at(d, plane + 2 * distance, lines[2]), d, values);
}

void ApplyLinesInterleaved(std::span<const std::uint8_t> planes, const PixelLine* lines,
                           float* values) {
  const Floats d;
  const std::size_t count = planes.size() / 3, lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    store_pixels(d, planes.data() + i, count, lines, values + 3 * i);
  }
  for (; i < count; ++i) {
    for (std::size_t c = 0; c < 3; ++c) {
      const auto value = line_at(OneFloat(), planes.data() + c * count + i, lines[c]);
      hn::StoreU(value, OneFloat(), values + 3 * i + c);
    }
  }
}

void SplitChannels(const std::uint8_t* pixels, std::size_t count, std::uint8_t* first,
                   std::uint8_t* second, std::uint8_t* third) {
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::Vec<hn::ScalableTag<std::uint8_t>> a, b, c;
    hn::LoadInterleaved3(d, pixels + 3 * i, a, b, c);
    hn::StoreU(a, d, first + i);
    hn::StoreU(b, d, second + i);
    hn::StoreU(c, d, third + i);
  }
  for (; i < count; ++i) {
    first[i] = pixels[3 * i];
    second[i] = pixels[3 * i + 1];
    third[i] = pixels[3 * i + 2];
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace paceline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paceline {

namespace {
HWY_EXPORT(SumsOfPixels);
HWY_EXPORT(ApplyLine);
HWY_EXPORT(ApplyLinesInterleaved);
HWY_EXPORT(SplitChannels);
}  // namespace

PixelSums pixel_sums(std::span<const std::uint8_t> pixels) {
  return HWY_DYNAMIC_DISPATCH(SumsOfPixels)(pixels);
}

void apply_line(std::span<const std::uint8_t> pixels, PixelLine line, float* values) {
  HWY_DYNAMIC_DISPATCH(ApplyLine)(pixels, line, values);
}

void apply_lines_interleaved(std::span<const std::uint8_t> planes, const PixelLine* lines,
                             float* values) {
  HWY_DYNAMIC_DISPATCH(ApplyLinesInterleaved)(planes, lines, values);
}

void split_channels(const std::uint8_t* pixels, std::size_t count, std::uint8_t* first,
                    std::uint8_t* second, std::uint8_t* third) {
  HWY_DYNAMIC_DISPATCH(SplitChannels)(pixels, count, first, second, third);
}

}  // namespace paceline
#endif  // HWY_ONCE
