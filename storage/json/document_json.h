#pragma once

#include <memory>

#include "storage/documents.h"

namespace everstep::storage {

// Documents as JSON, indented, one member per field after "document" (its kind) and "format" (its version), always the
// same text for the same value. Every bit of a double is kept, those of NaN and infinity as hexadecimal text. A setting
// that is not UTF-8 loses the bytes that are not.
std::unique_ptr<DocumentFormat> make_json_documents();

}  // namespace everstep::storage
