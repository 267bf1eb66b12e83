// SPDX-License-Identifier: Apache-2.0
// Names of GPU models as people write them against the names that drivers give. "A100" names
// "NVIDIA-A100-SXM4-80GB": every part of the name (cut at '-', '_' and blanks) must be a part of
// the model, without case; a number also stands for itself with "GB". Pure; nothing can fail.
#pragma once

#include "base/str.h"

bool gpu_model_matches(struct str name, struct str model);
