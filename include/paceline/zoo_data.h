// The distortions of the zoo's image models, and generated data for its models.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "paceline/data.h"

namespace paceline {

/// The distortion for the report's model `cifar10`: a random part of 24×24, mirrored or not,
/// brightness ±63, contrast 0.2 to 1.8, standardised; for evaluation the centre, standardised.
Distortion cifar10_distortion(bool training, std::uint64_t seed);
/// The distortion for `resnet`: 2 zeros around it, a random part of 32×32, mirrored or not,
/// standardised; for evaluation the image, standardised.
Distortion resnet_distortion(bool training, std::uint64_t seed);

/// Writes `count` training images to data_batch_1.bin … data_batch_5.bin and a fifth as many, at
/// least 10, to test_batch.bin, in CIFAR-10's format. The ten classes are five shapes (disc,
/// square, triangle, ring, cross), each with stripes or with checks; place, size, direction,
/// colours and noise are random. The same seed gives the same bytes. Throws kInvalidArgument when
/// `count` is below 10, and kFailedPrecondition when one of the files is there already.
void generate_images(const std::string& folder, std::int64_t count, std::uint64_t seed);
/// The images that generate_images makes with that seed, in memory: `count` of them, from number
/// `first` on. Throws kInvalidArgument when there are none.
std::shared_ptr<const RecordSource> generated_images(std::int64_t count, std::uint64_t seed,
                                                     std::int64_t first = 0);

/// Writes ptb.train.txt, ptb.valid.txt and ptb.test.txt, split as Penn Treebank is, into the
/// folder. They have `words` words in all, of exactly 10,000 types (with <eos> and <unk>, each in
/// train), with Zipf frequencies and a hidden-state grammar that a model can learn. The same seed
/// gives the same bytes. Throws kInvalidArgument when `words` is too small, naming the least.
void generate_corpus(const std::string& folder, std::int64_t words, std::uint64_t seed);

}  // namespace paceline
