#pragma once

#include <memory>

#include "storage/documents.h"

namespace everstep::storage {

// Documents as JSON, one member per field, numbers that must keep every bit as hexadecimal text.
std::unique_ptr<DocumentFormat> make_json_documents();

}  // namespace everstep::storage
