#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "storage/hdf5/hdf5_format.h"
#include "tests/storage/hdf5/plain_hdf5.h"

namespace everstep::storage {
namespace {

// Each case changes one thing of the plain file, which is accepted.
struct Hostile {
  std::string name;
  std::function<void(PlainHdf5&)> change;
  std::string complaint;
};

std::string complaint_about(const PlainHdf5& file) {
  const auto found = make_hdf5_format()->find_tensors(file.bytes(), PlainHdf5::spec());
  if (found) return "";
  EXPECT_EQ(found.error().code, ErrorCode::kDataLoss);
  EXPECT_EQ(found.error().message.find('\n'), std::string::npos);
  return found.error().message;
}

class HostileFile : public testing::TestWithParam<Hostile> {};

TEST_P(HostileFile, IsRefused) {
  PlainHdf5 file;
  GetParam().change(file);
  EXPECT_EQ(complaint_about(file), "the tensor file " + GetParam().complaint);
}

TEST(PlainFile, IsAcceptedAndSoWhatIsRefusedBelowIsTheChange) { EXPECT_EQ(complaint_about(PlainHdf5()), ""); }

void add_soft_link(hid_t file) { H5Lcreate_soft("/w", file, "soft", H5P_DEFAULT, H5P_DEFAULT); }

const Hostile kLinks[] = {
    {"SoftLink", [](PlainHdf5& f) { f.finally = add_soft_link; }, "has a soft link in the root group"},
    {"SoftLinkInsteadOfATensor",
     [](PlainHdf5& f) {
       f.finally = [](hid_t file) {
         H5Lmove(file, "w", file, "other", H5P_DEFAULT, H5P_DEFAULT);
         H5Lcreate_soft("other", file, "w", H5P_DEFAULT, H5P_DEFAULT);
       };
     },
     "has an unexpected link 'other'"},
    {"ExternalLink",
     [](PlainHdf5& f) {
       f.finally = [](hid_t file) { H5Lcreate_external("passwd", "/x", file, "ext", H5P_DEFAULT, H5P_DEFAULT); };
     },
     "has an external link in the root group"},
    {"UserDefinedLink",
     [](PlainHdf5& f) {
       f.finally = [](hid_t file) {
         const H5L_class_t own = {H5L_LINK_CLASS_T_VERS,
                                  static_cast<H5L_type_t>(70),
                                  "own",
                                  nullptr,
                                  nullptr,
                                  nullptr,
                                  [](const char*, hid_t, const void*, size_t, hid_t, hid_t) -> hid_t { return -1; },
                                  nullptr,
                                  nullptr};
         H5Lregister(&own);
         H5Lcreate_ud(file, "own", static_cast<H5L_type_t>(70), "x", 1, H5P_DEFAULT, H5P_DEFAULT);
       };
     },
     "has a user-defined link in the root group"},
    {"SecondHardLink",
     [](PlainHdf5& f) {
       f.finally = [](hid_t file) { H5Lcreate_hard(file, "w", file, "again", H5P_DEFAULT, H5P_DEFAULT); };
     },
     "has an unexpected link 'again'"},
    {"CycleOfHardLinks",
     [](PlainHdf5& f) {
       f.finally = [](hid_t file) {
         H5Ldelete(file, "group/v", H5P_DEFAULT);
         H5Lcreate_hard(file, "group", file, "group/v", H5P_DEFAULT, H5P_DEFAULT);
       };
     },
     "uses the same bytes twice, the second time for the header of the tensor 'group/v'"},
    {"GroupsSixtyFourDeep",
     [](PlainHdf5& f) {
       f.finally = [](hid_t file) {
         const hid_t links = H5Pcreate(H5P_LINK_CREATE);
         H5Pset_create_intermediate_group(links, 1);
         std::string path = "deep";
         for (int i = 0; i < 64; ++i) path += "/d";
         H5Gclose(H5Gcreate2(file, path.c_str(), links, H5P_DEFAULT, H5P_DEFAULT));
         H5Pclose(links);
       };
     },
     "has an unexpected link 'deep'"},
    {"MissingTensor", [](PlainHdf5& f) { f.finally = [](hid_t file) { H5Ldelete(file, "group/v", H5P_DEFAULT); }; },
     "lacks the tensor 'group/v'"},
    {"GroupInsteadOfATensor",
     [](PlainHdf5& f) {
       f.finally = [](hid_t file) {
         H5Ldelete(file, "w", H5P_DEFAULT);
         H5Gclose(H5Gcreate2(file, "w", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
       };
     },
     "has an unexpected kind of header for the tensor 'w'"},
    {"LinksInAHeap", [](PlainHdf5& f) { H5Pset_link_phase_change(f.file_creation, 0, 0); },
     "has the root group with links outside its header"},
};

const Hostile kStorage[] = {
    {"ExternalStorage", [](PlainHdf5& f) { H5Pset_external(f.dataset_creation, "passwd", 0, 24); },
     "keeps the bytes of the tensor 'w' in other files"},
    {"Chunked",
     [](PlainHdf5& f) {
       const hsize_t chunk[] = {1, 3};
       H5Pset_chunk(f.dataset_creation, 2, chunk);
     },
     "has the tensor 'w' in another layout than contiguous"},
    {"Filtered",
     [](PlainHdf5& f) {
       const hsize_t chunk[] = {1, 3};
       H5Pset_chunk(f.dataset_creation, 2, chunk);
       H5Pset_shuffle(f.dataset_creation);
     },
     "has filters for the tensor 'w'"},
    {"Compact", [](PlainHdf5& f) { H5Pset_layout(f.dataset_creation, H5D_COMPACT); },
     "has the tensor 'w' in another layout than contiguous"},
    {"Virtual",
     [](PlainHdf5& f) {
       H5Pset_libver_bounds(f.file_access, H5F_LIBVER_V110, H5F_LIBVER_V110);
       const hsize_t shape[] = {2, 3};
       const hid_t space = H5Screate_simple(2, shape, nullptr);
       H5Pset_layout(f.dataset_creation, H5D_VIRTUAL);
       H5Pset_virtual(f.dataset_creation, space, "passwd", "/x", space);
       f.write = false;
       H5Sclose(space);
     },
     "has a superblock of version 3 instead of 2"},
    {"NotAllocated",
     [](PlainHdf5& f) {
       H5Pset_alloc_time(f.dataset_creation, H5D_ALLOC_TIME_LATE);
       f.write = false;
     },
     "has the tensor 'w' with a fill value"},
    {"FillValue",
     [](PlainHdf5& f) {
       const float value = 3;
       H5Pset_fill_value(f.dataset_creation, H5T_NATIVE_FLOAT, &value);
     },
     "has the tensor 'w' with a fill value"},
    {"EightTebibytes",
     [](PlainHdf5& f) {
       f.shape = {std::uint64_t{1} << 41};
       f.write = false;
       H5Pset_alloc_time(f.dataset_creation, H5D_ALLOC_TIME_LATE);
     },
     "has the tensor 'w' with another shape than expected"},
    {"AnotherShape",
     [](PlainHdf5& f) {
       f.shape = {3, 2};
     },
     "has the tensor 'w' with another shape than expected"},
    {"AnotherRank", [](PlainHdf5& f) { f.shape = {6}; }, "has the tensor 'w' with another shape than expected"},
    {"UserBlock", [](PlainHdf5& f) { H5Pset_userblock(f.file_creation, 512); },
     "does not begin with the signature of HDF5"},
    {"OldFormat", [](PlainHdf5& f) { H5Pset_libver_bounds(f.file_access, H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST); },
     "has a superblock of version 0 instead of 2"},
    {"Times", [](PlainHdf5& f) { H5Pset_obj_track_times(f.dataset_creation, true); },
     "has an unexpected kind of header for the tensor 'w'"},
    {"SharedMessages",
     [](PlainHdf5& f) {
       H5Pset_shared_mesg_nindexes(f.file_creation, 1);
       H5Pset_shared_mesg_index(f.file_creation, 0, H5O_SHMESG_ALL_FLAG, 1);
     },
     "has a superblock extension"},
};

const Hostile kTypes[] = {
    {"BigEndian", [](PlainHdf5& f) { f.type = H5T_IEEE_F32BE; }, "has the tensor 'w' with another type than expected"},
    {"Double", [](PlainHdf5& f) { f.type = H5T_IEEE_F64LE; }, "has the tensor 'w' with another type than expected"},
    {"Integer", [](PlainHdf5& f) { f.type = H5T_STD_I32LE; }, "has the tensor 'w' with another type than expected"},
    {"ObjectReference", [](PlainHdf5& f) { f.type = H5T_STD_REF_OBJ; },
     "has the tensor 'w' with another type than expected"},
    {"RegionReference",
     [](PlainHdf5& f) {
       f.type = H5T_STD_REF_DSETREG;
       f.write = false;
     },
     "has the tensor 'w' with another type than expected"},
    {"CommittedType",
     [](PlainHdf5& f) {
       f.before_dataset = [&f](hid_t file) {
         f.type = H5Tcopy(H5T_IEEE_F32LE);
         H5Tcommit_anon(file, f.type, H5P_DEFAULT, H5P_DEFAULT);
       };
       f.finally = [&f](hid_t) { H5Tclose(f.type); };
     },
     "has a shared or unknown message in the header of the tensor 'w'"},
};

const Hostile kAttributes[] = {
    {"ExtraAttribute", [](PlainHdf5& f) { f.finally = [](hid_t file) { PlainHdf5::write_number(file, "evil", 1); }; },
     "has an unexpected attribute 'evil' at the root group"},
    {"AttributeWithControlCharacters",
     [](PlainHdf5& f) { f.finally = [](hid_t file) { PlainHdf5::write_number(file, "e\nv\x1b[2J", 1); }; },
     "has an unexpected attribute 'e?v?[2J' at the root group"},
    {"MissingAttribute", [](PlainHdf5& f) { f.finally = [](hid_t file) { H5Adelete(file, "job"); }; },
     "lacks the attribute 'job' at the root group"},
    {"MissingAttributeOfATensor",
     [](PlainHdf5& f) { f.finally = [](hid_t file) { H5Adelete_by_name(file, "w", "dtype", H5P_DEFAULT); }; },
     "lacks the attribute 'dtype' at the tensor 'w'"},
    {"AttributeOfAnotherType",
     [](PlainHdf5& f) {
       f.finally = [](hid_t file) {
         H5Adelete(file, "job");
         PlainHdf5::write_number(file, "job", 1);
       };
     },
     "has another attribute 'job' at the root group than expected"},
    {"AttributesInAHeap", [](PlainHdf5& f) { H5Pset_attr_phase_change(f.file_creation, 0, 0); },
     "has an unexpected kind of header for the root group"},
    {"AttributeOfAGroup",
     [](PlainHdf5& f) {
       f.finally = [](hid_t file) {
         const hid_t group = H5Gopen2(file, "group", H5P_DEFAULT);
         PlainHdf5::write_number(group, "evil", 1);
         H5Gclose(group);
       };
     },
     "has an unexpected attribute 'evil' at the group 'group/'"},
    {"Comment",
     [](PlainHdf5& f) { f.finally = [](hid_t file) { H5Oset_comment_by_name(file, "w", "hello", H5P_DEFAULT); }; },
     "has a message of the unexpected type 13 in the header of the tensor 'w'"},
};

std::string name_of(const testing::TestParamInfo<Hostile>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Links, HostileFile, testing::ValuesIn(kLinks), name_of);
INSTANTIATE_TEST_SUITE_P(Storage, HostileFile, testing::ValuesIn(kStorage), name_of);
INSTANTIATE_TEST_SUITE_P(Types, HostileFile, testing::ValuesIn(kTypes), name_of);
INSTANTIATE_TEST_SUITE_P(Attributes, HostileFile, testing::ValuesIn(kAttributes), name_of);

}  // namespace
}  // namespace everstep::storage
