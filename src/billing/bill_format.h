// SPDX-License-Identifier: Apache-2.0
// A bill as text: JSON in whole nano units (the form that programs compare), CSV in decimal
// units with a closing proof that the lines add up. Writing fails only as the buffer does.
#pragma once

#include "base/buf.h"
#include "billing/rate.h"

void bill_format_json(struct buf *out, const struct bill *bill);
// The same members with money as decimal text, for everybody but raters.
void bill_format_json_decimal(struct buf *out, const struct bill *bill, struct str tenant);
// tenant empty: all lines and the proof; else that tenant's line.
void bill_format_csv(struct buf *out, const struct bill *bill, struct str tenant);
