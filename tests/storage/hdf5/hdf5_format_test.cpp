#include "storage/hdf5/hdf5_format.h"

#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <sys/resource.h>

#include "tests/storage/hdf5/assembled_file.h"

namespace everstep::storage {
namespace {

std::string random_name() {
  const auto letter = rc::gen::elementOf(std::string("abyzAZ09._-"));
  const auto word = *rc::gen::resize(8, rc::gen::nonEmpty(rc::gen::container<std::string>(letter)));
  return "t" + word;  // never "."
}

TensorFileSpec random_spec() {
  TensorFileSpec spec;
  spec.attributes.job = *rc::gen::resize(40, rc::gen::container<std::string>(rc::gen::inRange(' ', '~')));
  spec.attributes.kind = *rc::gen::elementOf(std::vector<std::string>{"weights", "previous", "optimizer", "gradients"});
  spec.attributes.block = *rc::gen::arbitrary<std::int64_t>();
  spec.attributes.position = *rc::gen::arbitrary<std::int64_t>();
  spec.attributes.version = *rc::gen::inRange<std::int64_t>(0, 1000);
  std::set<std::string> names;
  const int tensors = *rc::gen::inRange(0, 20);
  for (int i = 0; i < tensors; ++i) {
    const std::string group = *rc::gen::elementOf(std::vector<std::string>{"", "first_moment/", "second_moment/"});
    TensorSpec tensor{group + random_name(), static_cast<ElementType>(*rc::gen::inRange(0, 3)), {}};
    const int rank = *rc::gen::inRange(0, 5);
    for (int d = 0; d < rank; ++d) tensor.shape.push_back(*rc::gen::inRange<std::int64_t>(1, 6));
    if (names.insert(tensor.name).second) spec.tensors.push_back(std::move(tensor));
  }
  return spec;
}

RC_GTEST_PROP(Hdf5Format, FindsTheTensorsOfAnyFileItLaidOut, ()) {
  const TensorFileSpec spec = random_spec();
  const auto format = make_hdf5_format();
  const TensorFileLayout layout = format->lay_out(spec).value();
  const std::vector<std::byte> file = assemble(spec, layout);
  const auto found = format->find_tensors(file, spec);
  if (!found) RC_FAIL(found.error().line());
  RC_ASSERT(*found == layout.offsets);
  for (const std::uint64_t offset : *found) RC_ASSERT(offset % 8 == 0U);
  RC_ASSERT(assemble(spec, format->lay_out(spec).value()) == file);  // the same bytes again
}

TEST(Hdf5Format, PutsAllMetadataInFrontOfTheTensors) {
  TensorFileSpec spec = small_spec();
  for (int i = 0; i < 300; ++i) {
    const std::string name = std::string(i % 2 == 0 ? "" : "second_moment/") + std::string(150, 'x');
    spec.tensors.push_back({name + std::to_string(i), ElementType::kFloat32, {1, 1, 1, 1, 1, 1, 1, 1}});
  }
  const auto layout = make_hdf5_format()->lay_out(spec).value();
  ASSERT_EQ(layout.metadata.size(), 1U);
  for (const std::uint64_t offset : layout.offsets) EXPECT_GE(offset, layout.metadata.front().bytes.size());
}

TEST(Hdf5Format, NeedsNoMemoryForTheBytesOfTensors) {
  TensorFileSpec spec;
  for (int i = 0; i < 8; ++i) {
    spec.tensors.push_back({"t" + std::to_string(i), ElementType::kFloat32, {std::int64_t{1} << 36}});
  }
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  const auto layout = make_hdf5_format()->lay_out(spec).value();
  rusage after{};
  getrusage(RUSAGE_SELF, &after);
  EXPECT_GT(layout.size, std::uint64_t{1} << 41);
  EXPECT_LT(layout.metadata.front().bytes.size(), 16384U);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 64 * 1024);  // KiB: far from 2 TiB, above what libhdf5 loads once
}

TEST(Hdf5Format, TakesCallsFromSeveralThreads) {
  const auto format = make_hdf5_format();
  const TensorFileSpec spec = small_spec();
  const std::vector<std::byte> file = make_tensor_file(spec);
  std::vector<std::thread> threads;
  std::vector<int> equal(4);
  for (int& count : equal) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        const auto layout = format->lay_out(spec);
        const auto found = format->find_tensors(file, spec);
        count += layout && found && layout->offsets == *found && assemble(spec, *layout) == file ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, std::vector<int>(4, 20));
}

TEST(Hdf5Format, DoesNotWriteToTheFileItReads) {
  const TensorFileSpec spec = small_spec();
  const std::vector<std::byte> file = make_tensor_file(spec);
  const std::vector<std::byte> copy = file;
  ASSERT_TRUE(make_hdf5_format()->find_tensors(copy, spec));
  EXPECT_EQ(copy, file);
}

struct BadSpec {
  std::string name;
  TensorFileSpec spec;
  std::string complaint;
};

TensorFileSpec spec_with(std::vector<std::string> names) {
  TensorFileSpec spec;
  for (std::string& name : names) spec.tensors.push_back({std::move(name), ElementType::kFloat32, {1}});
  return spec;
}

TEST(Hdf5Format, RefusesSpecsThatNoFileCanHave) {
  TensorFileSpec long_job;
  long_job.attributes.job = std::string(1001, 'j');
  TensorFileSpec nul;
  nul.attributes.kind = std::string("a\0b", 3);
  const BadSpec specs[] = {
      {"twice", spec_with({"a", "b", "a"}), "two tensors are named a"},
      {"group and tensor", spec_with({"a", "a/b"}), "'a' names a tensor and a group of tensors"},
      {"dot", spec_with({"."}), "'.' is no name"},
      {"dot group", spec_with({"./a"}), "'.' is no name"},
      {"dot in group", spec_with({"a/."}), "'.' is no name"},
      {"many", {{}, std::vector<TensorSpec>(5000)}, "at most 4096 tensors, not 5000"},
      {"long job", long_job, "the job of a tensor file"},
      {"nul", nul, "the kind of a tensor file"},
  };
  const auto format = make_hdf5_format();
  for (const BadSpec& bad : specs) {
    const auto layout = format->lay_out(bad.spec);
    ASSERT_FALSE(layout) << bad.name;
    EXPECT_EQ(layout.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(layout.error().message.find(bad.complaint), std::string::npos) << layout.error();
    EXPECT_FALSE(format->find_tensors({}, bad.spec)) << bad.name;
  }
}

}  // namespace
}  // namespace everstep::storage
