// Data to train on: pipelines that make batches of records and images, and text for language
// models.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "paceline/task_position.h"
#include "paceline/tensor.h"

namespace paceline {

/// The order of the values of an image in memory.
enum class PixelLayout : std::uint8_t {
  kPlanar,       // one channel after the other (C, H, W); batches are NCHW
  kInterleaved,  // the channels of each pixel side by side (H, W, C); batches are NHWC
};

/// The size of an image.
struct ImageSize {
  std::int64_t height = 0;    // rows
  std::int64_t width = 0;     // pixels in a row
  std::int64_t channels = 3;  // values of a pixel
  /// The number of values.
  std::int64_t values() const { return channels * height * width; }
  bool operator==(const ImageSize&) const = default;
};

/// A record on its way through a pipeline. The memory that it refers to is its own, or belongs to
/// the source or a cache and must not be written.
struct Example {
  std::span<const std::uint8_t> bytes;        // pixels, or a file that is still encoded
  ImageSize size;                             // of the pixels; zeros while it is encoded
  PixelLayout layout = PixelLayout::kPlanar;  // of the pixels
  std::int32_t label = 0;                     // the class, from 0
  std::int64_t index = 0;                     // of the record in its source, from 0
  std::int64_t epoch = 0;                     // the pass over the source, from 0
  std::int64_t place = 0;                     // in the order of the epoch, of all shards
  std::vector<std::uint8_t> memory;           // where `bytes` may lie
  std::vector<std::uint8_t> spare;            // working memory of a stage
};

/// Records that can be read in any order. Functions are called on many threads at once.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  /// The numbers of records of its files. A record's index counts through all of them.
  virtual std::vector<std::int64_t> files() const = 0;
  /// Reads a record: bytes, size, layout and label. Throws kDataLoss, kNotFound or kUnavailable,
  /// naming the record, when it cannot be read; a pipeline may then leave it out
  /// (Pipeline::max_bad).
  virtual void read(std::int64_t index, Example& to) const = 0;
  /// The record's name for messages: "train/cat/0001.jpg", "data_batch_1.bin, record 17".
  virtual std::string name(std::int64_t index) const = 0;
  /// The names of the classes by label; empty when labels have none.
  virtual std::vector<std::string> classes() const { return {}; }
  /// Names the things beside the records that are none: "3 .gif, 2 folders"; empty: nothing.
  virtual std::string left_out() const { return {}; }
};

/// The format of files of records of one length: label bytes, then the pixels.
struct RecordFormat {
  std::int64_t label_bytes = 1;               // before the pixels; the last of them is the label
  ImageSize size = {32, 32, 3};               // of each image, one byte a value
  PixelLayout layout = PixelLayout::kPlanar;  // of the pixels
  std::int32_t classes = 10;                  // labels are below this
};

/// The files that a path means: itself; what a folder holds, but folders, whose names end in
/// `ending`; or what matches a shell pattern (`*`, `?`, `[…]`). Sorted by name. Throws kNotFound
/// when there are none.
std::vector<std::string> files_of(const std::string& path, std::string_view ending);

/// Records of one length in binary files; the default format is CIFAR-10's
/// (https://www.cs.toronto.edu/~kriz/cifar.html). Files stay open and are read record by record.
/// Throws, naming the file, kDataLoss when one is empty or not a whole number of records, and
/// kNotFound when it cannot be read; kInvalidArgument when there is no file.
std::shared_ptr<const RecordSource> record_files(const std::vector<std::string>& files,
                                                 const RecordFormat& format = {});
/// Images in memory: (images, …) uint8 values as `format` lays them out, and their labels. Throws
/// kInvalidArgument when sizes do not fit together.
std::shared_ptr<const RecordSource> images_in_memory(std::vector<std::uint8_t> pixels,
                                                     std::vector<std::int32_t> labels,
                                                     const RecordFormat& format = {});

/// A folder of images by class: FOLDER/CLASS/NAME.jpg (.jpeg, .jpe, .jfif), .png or .webp. Labels
/// count the classes by name; with `classes`, those of another folder, labels are theirs. What has
/// one of these endings and cannot be read, such as a link to nowhere, is a bad record. Names that
/// begin with a dot are left out, and other files and folders too (left_out()). Records are encoded
/// files (Pipeline::decode). Throws kNotFound when there is no such folder, or a link to nowhere
/// in place of a class; and kInvalidArgument, naming it, for fewer than two classes, a class
/// without images or one that is not in `classes`.
std::shared_ptr<const RecordSource> image_folder(const std::string& folder,
                                                 const std::vector<std::string>& classes = {});

/// Images without classes: the file at `path`, or the files of that folder and of the folders in it
/// whose names end as those of image_folder do, sorted by name. Labels are 0, and records are
/// encoded files (Pipeline::decode). Throws kNotFound when there is nothing at the path, and
/// kInvalidArgument, naming it, for a folder without images.
std::shared_ptr<const RecordSource> image_files(const std::string& path);

/// Counts the images and classes of a source: "50,000 images, 10 classes".
std::string images_in_words(const RecordSource& images, std::int64_t classes);

/// How JPEG, PNG and WebP files become pixels of three channels, and of one size, by bilinear
/// interpolation. Images are turned and mirrored as their EXIF data says. Values are those of the
/// file: 16 bits are rounded to 8, gAMA is ignored, and what is transparent is shown on black. Only
/// the part of a JPEG file that is used is decoded, at the smallest of its scales (1/8, 1/4, 1/2,
/// 1) that is not below the result.
struct ImageDecoding {
  std::int64_t height = 0;  // of the result; 0, like width: as the file has it
  std::int64_t width = 0;   // of the result
  /// A part of random place, area and aspect ratio (Szegedy et al., arXiv 1409.4842, and so the
  /// usual one for ImageNet): area `least_area` to 1 of the image, ratio 3/4 to 4/3. False: the
  /// largest part in the centre with the result's aspect ratio.
  bool random = false;
  double least_area = 0.08;  // of a random part
  std::uint64_t seed = 1;    // random numbers are a function of (seed, epoch, place in the epoch)
};

/// Replaces the encoded file that the example holds by its pixels, interleaved. Throws kDataLoss,
/// naming the fault, when it is no JPEG, PNG or WebP file, is corrupt, or too large (more than
/// 2²⁶ pixels).
void decode_image(const ImageDecoding& decoding, Example& example);

/// Pixels (rows of three channels, interleaved) as a PNG file. Throws kUnavailable, naming the
/// file, when it cannot be written.
void write_png(const std::string& path, std::span<const std::uint8_t> pixels, std::int64_t height,
               std::int64_t width);

struct InputBatch;
/// Writes the images of a batch, of three channels, side by side to a PNG file, each stretched from
/// its least to its greatest value: what a model sees. Throws kInvalidArgument for values of
/// another shape, and kUnavailable, naming the file, when it cannot be written.
void write_batch_png(const std::string& path, const InputBatch& batch,
                     PixelLayout layout = PixelLayout::kPlanar);

/// The pixels around an image that is padded.
enum class PadWith : std::uint8_t {
  kZeros,       // zeros
  kReflection,  // the image mirrored at its outermost pixels, which are not repeated
};

/// The images that a random distortion mirrors from left to right.
enum class Mirror : std::uint8_t {
  kRandom,       // each with probability ½ in each epoch
  kAlternating,  // in the first epoch half of the records, then by turns the others and these
                 // (Jordan, arXiv 2404.00498)
};

/// A change of images and their conversion to float32, in this order: a margin around the image, a
/// part of it, mirrored from left to right, brighter or darker, more or less contrast about each
/// channel's mean, standardised: (x − µ) / max(σ, 1/√N) over all N values of the image
/// (TensorFlow's `per_image_standardization`); then (x − mean) · scale with given numbers of each
/// channel. Steps that are not asked for are left out. All random numbers of a record are a
/// function of (seed, epoch, its place in the epoch).
struct Distortion {
  std::int64_t pad = 0;                // pixels added on each of the four sides
  PadWith pad_with = PadWith::kZeros;  // these pixels
  std::int64_t height = 0;             // of the part; 0: all of the image
  std::int64_t width = 0;              // of the part; 0: all of the image
  /// A random part, mirrored or not. False: the part in the centre, and none of the random steps.
  bool random = true;
  Mirror mirror = Mirror::kRandom;   // of random ones
  double brightness = 0;             // a random number up to ± this is added to all values
  double contrast_low = 1;           // the least factor of contrast
  double contrast_high = 1;          // the greatest
  bool standardise = true;           // mean 0 and deviation 1 for each image
  std::array<double, 4> means = {};  // subtracted, by channel
  std::array<double, 4> scales = {1, 1, 1, 1};  // multiplied with after that, by channel
  PixelLayout layout = PixelLayout::kPlanar;    // of the result
  std::uint64_t seed = 1;                       // of all random numbers
};

/// Distorts one image, with the example's `spare` as working memory. Throws kInvalidArgument unless
/// `values` has the size of the result, or when the image is smaller than the part.
void distort(const Distortion& distortion, Example& example, std::span<float> values);

/// The fate of the examples that are left when an epoch is divided into batches.
enum class LastBatch : std::uint8_t {
  kDrop,   // they are left out of this epoch
  kPad,    // they are one more batch, filled up with zeros
  kShort,  // they are one more batch, a smaller one: for inputs whose batch is open (Graph::open)
};

/// The order in which a parallel stage hands on its records.
enum class MapOrder : std::uint8_t {
  kOrdered,     // as it gets them: a run gives the same batches each time
  kAsFinished,  // as they are finished: none waits for a slow one before it
};

struct PipelinePlan;

/// How batches are made: a source and stages. It is a description, and cheap to copy; the work is
/// done by a PipelineReader, whose threads each take records through all stages.
///
///     Pipeline train = Pipeline(record_files(files_of("cifar", ".bin")))
///                          .interleave(5).shard(worker, workers).shuffle(20'000).repeat()
///                          .distort({.pad = 4, .height = 32, .width = 32})
///                          .batch(128).prefetch(2);
///
/// The order of an epoch's records is decided before any is read, from (seed, epoch) alone: files
/// are interleaved, then sharded, then shuffled, in whatever order these stages were named. So the
/// place in the data is two numbers, epoch and record, and training resumes with the very next
/// record, even in the middle of a shuffle pool. (Grain, a loader for JAX, has the same idea.)
/// Functions throw kInvalidArgument for numbers that cannot be.
class Pipeline {
 public:
  /// All records of the source, once, in the order of their index.
  explicit Pipeline(std::shared_ptr<const RecordSource> source);

  /// Files in another order in each epoch, and records from `files` of them by turns.
  Pipeline& interleave(int files);
  /// The records of this task alone: of each `parts` records in a row the one at `part`. Throws
  /// kInvalidArgument when that leaves none.
  Pipeline& shard(int part, int parts);
  /// The job shares out the records among its workers while they train: each takes the next ones
  /// when it needs some, so that each record is used once in an epoch, however fast the workers
  /// are and whichever of them are lost (--shard dynamic, Cluster::shares_records). A PipelineFeed
  /// finds them in Feed::record_blocks(). All workers have the same pipeline, without shard().
  Pipeline& share_out();
  /// Shuffles by a pool of `pool` records: the next record is drawn from it at random, and the
  /// source's next record takes its place. A pool of at least the epoch's records shuffles it as a
  /// whole.
  Pipeline& shuffle(std::int64_t pool);
  /// The number of epochs; without a number they never end. A batch may then have records of two.
  Pipeline& repeat(std::optional<std::int64_t> epochs = {});
  /// The seed of the order: of files and of the pool. All workers of a job have the same.
  Pipeline& seed(std::uint64_t seed);
  /// Adds a stage of your own, which changes an example in place; many threads call it at once.
  Pipeline& map(std::string name, std::function<void(Example&)> function,
                MapOrder order = MapOrder::kOrdered);
  /// Keeps each record in memory as the stages so far make it, up to this number of bytes; the rest
  /// is made anew in each epoch. Copies of the pipeline share the cache. The stages before it must
  /// not be random.
  Pipeline& cache(std::int64_t bytes);
  /// The stage "decode": JPEG, PNG and WebP files become pixels.
  Pipeline& decode(const ImageDecoding& decoding);
  /// The last stage before batches: it writes the example's values straight into the memory of the
  /// batch, where they have this shape.
  Pipeline& into(const Shape& shape, std::string name,
                 std::function<void(Example&, std::span<float>)> function);
  /// The last stage before batches, made of a distortion of images, whose height and width must be
  /// given.
  Pipeline& distort(const Distortion& distortion);
  /// Makes batches of this number of records.
  Pipeline& batch(std::int64_t records, LastBatch last = LastBatch::kDrop);
  /// Batches that are made ahead of the one that is used (default 2).
  Pipeline& prefetch(int batches);
  /// The most threads that make batches; 0, the default: one for each core. So many as are needed
  /// work, by the measured times of the stages.
  Pipeline& threads(int most);
  /// The number of bad records that are left out, each named; one more ends the run with kDataLoss.
  /// Default: 0. The next good record of the source takes the place of a bad one, with weight 0.
  Pipeline& max_bad(std::int64_t records);
  /// `say` is called once for each bad record, with its name and its fault, on any thread.
  Pipeline& on_bad(std::function<void(const std::string&)> say);

  /// Records of this task in an epoch.
  std::int64_t examples() const;
  /// Batches of one epoch when it does not repeat.
  std::int64_t batches() const;
  /// The shape of a batch's values: (batch, …). Throws kInvalidArgument while it is not known.
  Shape shape() const;
  /// True after share_out().
  bool is_shared_out() const;
  /// The source.
  const RecordSource& source() const;
  /// The plan of the stages, for a PipelineReader.
  const std::shared_ptr<const PipelinePlan>& plan() const { return plan_; }

 private:
  PipelinePlan& change();
  std::shared_ptr<const PipelinePlan> plan_;
};

/// A batch that is ready.
struct InputBatch {
  Tensor values;             // float32 (batch, …)
  Tensor labels;             // int32 (batch)
  Tensor weights;            // float32 (batch): 1 for a record, 0 for what stands in for one
  std::int64_t records = 0;  // with weight 1
  std::int64_t rows = 0;     // batch; fewer of the last one, if that is short (LastBatch::kShort)
};

/// The numbers of one stage of a pipeline since it began.
struct StageReport {
  std::string name;                 // "read", "decode", "distort"
  std::int64_t records = 0;         // that went through
  double seconds = 0;               // spent in it, of all threads together
  double records_per_s = 0;         // one thread's rate while it works in this stage
  std::optional<double> fill = {};  // of stages that hold something: the part that is full, 0 to 1
  bool operator==(const StageReport&) const = default;
};

/// The numbers of a pipeline since it began.
struct InputReport {
  std::vector<StageReport> stages = {};  // in the order in which records go through them
  std::int64_t records = 0;              // in batches that were used
  std::int64_t batches = 0;              // that were used
  std::int64_t bad = 0;                  // records that were left out
  int threads = 0;                       // that make batches at the moment
  int most_threads = 0;                  // that may
  double seconds = 0;                    // since the first batch was asked for
  double waited = 0;                     // seconds of them in which a batch was waited for
  /// The stage that takes most of the threads' time; null when nothing was done.
  const StageReport* slowest() const;
  /// Records a second that the pipeline could make with all its threads; 0 when it has made none.
  double capacity() const;
  bool operator==(const InputReport&) const = default;
};

/// Makes the batches of a pipeline, on threads of its own, which end with it. For one thread.
class PipelineReader {
 public:
  /// Begins with the record after `position`. Throws kInvalidArgument for a pipeline without
  /// batches or whose values have no shape, and when the position is not one of this data.
  explicit PipelineReader(const Pipeline& pipeline, const TaskPosition& position = {},
                          const std::string& name = "data");
  /// Takes its records from `blocks`, which the pipeline shares (Pipeline::share_out). Throws
  /// kInvalidArgument for a pipeline with shards, or whose stages hand on records as they are
  /// finished.
  PipelineReader(const Pipeline& pipeline, std::shared_ptr<RecordBlocks> blocks,
                 const std::string& name = "data");
  ~PipelineReader();
  PipelineReader(const PipelineReader&) = delete;
  PipelineReader& operator=(const PipelineReader&) = delete;

  /// Waits for the next batch, which stays valid until the next call; null after the last one.
  /// Throws what a stage has thrown for a record of this batch.
  const InputBatch* next();
  /// Writes the place after the last batch: NAME.epoch, NAME.record (used of this epoch), NAME.size
  /// (records of an epoch), and the earlier records that are not used yet, because a stage hands on
  /// its records as they are finished: NAME.late (how many) and NAME.late.1, …. With data of
  /// another size, or another number of workers, a reader goes on after the same part of the epoch.
  /// For records that are shared out it writes how many were taken (kTakenRecords), and the place
  /// after the furthest.
  void tell(TaskPosition& position) const;
  /// True when its records belong to others by now (RecordBlocks::revoked): another reader must
  /// take its place.
  bool revoked() const;
  /// Returns the numbers of the stages so far. Any thread may call it.
  InputReport report() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// A line of a text.
struct TextLine {
  std::vector<std::int32_t> ids;  // of its words, without an "<eos>" for its end
  std::int64_t unknown = 0;       // so many of them were read as "<unk>"
};

/// The words of a text, with ids in the order of (−count, word). A newline counts as "<eos>".
class Vocabulary {
 public:
  /// The `most` most frequent words of the file. Throws kNotFound, and kDataLoss when the file is
  /// empty or no text.
  static Vocabulary from_file(const std::string& path, std::size_t most = 10000);

  /// These words, by id, such as those that a checkpoint tells (SavedModel::data_names).
  static Vocabulary of(std::vector<std::string> words);

  /// The number of words.
  std::size_t size() const { return words_.size(); }
  /// The word of an id, which must be in [0, size()).
  const std::string& word(std::int32_t id) const { return words_[std::size_t(id)]; }
  /// The id of the word, or of "<unk>" when it is unknown. Throws kNotFound, naming the word, when
  /// there is no "<unk>" either.
  std::int32_t id(std::string_view word) const;
  /// The file as one stream of ids, "<eos>" at each newline. A token that is not in the vocabulary
  /// is read as "<unk>"; `unknown`, where given, becomes the number of those. Throws kNotFound,
  /// kDataLoss (not text), and kNotFound naming file, line and token when there is no "<unk>".
  std::vector<std::int32_t> read(const std::string& path, std::int64_t* unknown = nullptr) const;
  /// The lines of the file, in their order. Throws the same.
  std::vector<TextLine> read_lines(const std::string& path) const;

 private:
  /// The id of a token of the text at `path`, or of "<unk>", which is counted.
  std::int32_t id_in(std::string_view word, const std::string& path, std::int64_t line,
                     std::int64_t& unknown) const;

  std::vector<std::string> words_;
  struct WordHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view word) const {
      return std::hash<std::string_view>()(word);
    }
  };
  std::unordered_map<std::string, std::int32_t, WordHash, std::equal_to<>> ids_;
};

/// A stream laid out as `batch` rows. Batch i consists of the columns [i·steps, (i+1)·steps), and
/// its targets are the same columns shifted by one (Zaremba et al., arXiv 1409.2329).
class TextBatches {
 public:
  /// Throws kInvalidArgument when the stream gives less than one batch.
  TextBatches(std::vector<std::int32_t> stream, std::int64_t batch, std::int64_t steps);
  /// The number of batches.
  std::int64_t size() const { return count_; }
  /// Fills inputs and targets with batch `index`, each (steps, batch) row-major: time first. Throws
  /// kInvalidArgument when there is no such batch, or one of the two has another size.
  void fill(std::int64_t index, std::span<std::int32_t> inputs,
            std::span<std::int32_t> targets) const;

 private:
  void check(std::int64_t index, std::size_t size) const;

  std::vector<std::int32_t> stream_;
  std::int64_t batch_, steps_, row_, count_;
};

/// Takes the records that a job shares out (Feed::record_blocks, Session::record_blocks) by the
/// rules of RecordBlocks, and waits for those that are not there yet. For one thread.
class RecordTaker {
 public:
  /// Will ask for blocks as `wish` says.
  explicit RecordTaker(const RecordBlocks::Wish& wish);
  ~RecordTaker();
  RecordTaker(const RecordTaker&) = delete;
  RecordTaker& operator=(const RecordTaker&) = delete;

  /// Begins to ask these blocks, unless it does so already and what was taken is still this
  /// worker's. Throws what RecordBlocks::begin does.
  void follow(const std::shared_ptr<RecordBlocks>& blocks);
  /// How often it has begun: whenever the number changes, what was taken before and not used is
  /// given to others.
  int begins() const;
  /// At most so many records in a row, for which it waits; none when there will be no more. It
  /// begins anew where what was taken belongs to others by now. `check` is called several times a
  /// second while it waits; an exception of it, or of a job that fails or is to stop, ends the
  /// wait. follow() comes first.
  RecordRange take(std::int64_t most, const std::function<void()>& check = {});
  /// Uses `records` more of the taken records for the next step, whose position (Feed::position)
  /// must then have the returned number under kTakenRecords.
  std::int64_t use(std::int64_t records);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// A batch of a text that a job shares out.
struct SharedBatch {
  std::int64_t index = 0;    // of TextBatches, from 0
  std::int64_t epoch = 0;    // the pass over the text, from 0
  bool begins_block = true;  // it does not follow the one before: a recurrent state begins anew
};

/// The batches of a text that a job shares out among its workers (--shard dynamic,
/// Feed::record_blocks): each worker reads the next block when it needs one, a contiguous stretch
/// of some batches, so that each batch is read once in an epoch. All workers have the same text,
/// and batches of the same size. For one thread.
///
///     SharedBatches shared(batches.size());
///     session.run([&](Feed& feed) {
///       const auto next = shared.next(feed.record_blocks());
///       if (!next) return feed.stop();
///       shared.use(feed.position());
///       batches.fill(next->index, …);
///     });
class SharedBatches {
 public:
  /// `batches` make an epoch; a block has at most `block` of them. Without `epochs` they never end.
  /// Throws kInvalidArgument for numbers below 1.
  SharedBatches(std::int64_t batches, std::int64_t block, std::optional<std::int64_t> epochs = {});
  ~SharedBatches();
  SharedBatches(const SharedBatches&) = delete;
  SharedBatches& operator=(const SharedBatches&) = delete;

  /// The next batch of this worker, for which it waits; none when there will be no more. Without
  /// use() it is the same again. Throws when the job fails meanwhile, or is to stop.
  std::optional<SharedBatch> next(const std::shared_ptr<RecordBlocks>& blocks);
  /// The next step reads it. `position` is that of the feed.
  void use(TaskPosition& position);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Part `index` of `parts` equal contiguous parts of a stream.
std::vector<std::int32_t> part_of(const std::vector<std::int32_t>& stream, int index, int parts);

}  // namespace paceline
