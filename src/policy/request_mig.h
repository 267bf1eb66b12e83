// SPDX-License-Identifier: Apache-2.0
// Requests for one MIG device: what may stand beside a profile, and whether the installation has
// such devices. Which profiles a board could have does not make them: a layout does, and that is
// an administrator's to choose, so that a profile without devices is refused with what there is.
// Internal to this folder. Pure.
#pragma once

#include "policy/request.h"

// ret_field: of the request's body, when it is refused.
MUST_USE err_status request_mig_check_alone(const struct request_spec *spec, const char **ret_field,
					    struct err *err);
MUST_USE err_status request_mig_check_possible(const struct request_spec *spec,
					       const struct inventory *inventory, struct err *err);
// Whether one of its models is this one; without any, every one is.
bool request_wants_model(const struct request_spec *spec, struct str model);
