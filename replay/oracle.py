"""An independent rater with fractions: slow, short, and written apart from the server's.

It follows the rules of rating in src/billing/README.md: every amount is the difference of one
cumulative function at both ends of the period, rounded half-even, apportioned by largest
remainder, ties by name.
"""
import bisect
import datetime
import zoneinfo
from fractions import Fraction

FREE = "~unallocated"
MJ_PER_KWH = 3_600_000_000
NANO = 10 ** 9


def seconds_of(text):
    return int(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp())


def half_even(value):
    return round(value)  # Fraction rounds half to even


def apportion(total, weights):
    """Whole parts of total by weight; the parts add up to total."""
    weight_sum = sum(weights.values())
    if weight_sum == 0:
        return {FREE: total} if total else {}
    exact = {name: Fraction(total) * weight / weight_sum for name, weight in weights.items()}
    parts = {name: value.numerator // value.denominator for name, value in exact.items()}
    order = sorted(weights, key=lambda n: (-(exact[n] - parts[n]), n.encode()))
    for name in order[:total - sum(parts.values())]:
        parts[name] += 1
    return parts


def year_start(year):
    return int(datetime.datetime(year, 1, 1, tzinfo=datetime.timezone.utc).timestamp())


def length_of(year):
    return year_start(year + 1) - year_start(year)


def plus_years(seconds, years):
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    try:
        return int(moment.replace(year=moment.year + years).timestamp())
    except ValueError:  # 29 February
        return int(moment.replace(year=moment.year + years, day=28).timestamp())


class Asset:
    """Cumulative cost of one asset in nano, amortization and support apart."""

    def __init__(self, row):
        self.start = seconds_of(row["in_service"])
        self.end = plus_years(self.start, row["life_years"])
        self.loss = (Fraction(row["cost"]) - Fraction(row.get("salvage", "0"))) * NANO
        self.support = Fraction(row.get("support_per_year", "0")) * NANO
        self.gpus = [g["id"] for g in row["gpus"]]

    def amortized(self, instant):
        spent = min(max(instant - self.start, 0), self.end - self.start)
        return half_even(self.loss * spent / (self.end - self.start))

    def supported(self, instant):
        total, at = Fraction(0), self.start
        while at < instant:
            year = datetime.datetime.fromtimestamp(at, datetime.timezone.utc).year
            first, last = year_start(year), year_start(year + 1)
            until = min(instant, last)
            total += self.support * (until - at) / (last - first)
            at = until
        return half_even(total)

    def cost(self, start, end):
        return self.amortized(end) - self.amortized(start) + self.supported(end) - self.supported(start)

    def stretches(self):
        """(begin, end) of every time in which the asset costs the same each second."""
        marks = {self.start, self.end}
        if self.support:
            marks |= {year_start(y) for y in range(1971, 2200)
                      if year_start(y) > self.start and length_of(y) != length_of(y - 1)}
        marks = sorted(marks)
        return list(zip(marks, marks[1:] + [year_start(9000)]))


def allocations_of(events):
    """gpu -> [(tenant, bound, released or None, share)], zero lengths left out."""
    told = {}
    for event in events:
        if event["type"] in ("bound", "released"):
            key = (event["gpu"], event["pod_uid"], event.get("container"))
            told.setdefault(key, {})[event["type"]] = event
    result = {}
    for (gpu, _, _), pair in told.items():
        share = pair["bound"].get("share", {"num": 1, "den": 1})
        bound = seconds_of(pair["bound"]["t"])
        released = seconds_of(pair["released"]["t"]) if "released" in pair else None
        if released is None or released > bound:
            result.setdefault(gpu, []).append(
                (pair["bound"]["tenant"], bound, released, Fraction(share["num"], share["den"])))
    return result


def weights_of(rows, start, end):
    """Share-seconds by tenant between two instants, with what nobody held. Instants where the
    shares pass 1 are normalised by their sum."""
    rows = [(t, max(b, start), min(end if r is None else r, end), s) for t, b, r, s in rows]
    rows = [r for r in rows if r[1] < r[2]]
    marks = sorted({start, end} | {m for r in rows for m in r[1:3]})
    weights = {}
    for left, right in zip(marks, marks[1:]):
        held = [(t, s) for t, b, r, s in rows if b <= left and r >= right]
        total = sum((s for _, s in held), Fraction(0))
        for tenant, share in held:
            share = share / total if total > 1 else share
            weights[tenant] = weights.get(tenant, 0) + share * (right - left)
        weights[FREE] = weights.get(FREE, 0) + max(Fraction(0), 1 - total) * (right - left)
    return {name: weight for name, weight in weights.items() if weight > 0}


class Counter:
    """Cumulative millijoules of one GPU over its energy rows, linear between instants that have
    any. Each epoch is a counter run of its own; a reading below the one before counts from 0."""

    def __init__(self, events):
        rows = sorted((seconds_of(e["t"]), int(e["energy_mj"]), e.get("epoch") or "") for e in events)
        self.times, self.values, total, last = [], [], 0, {}
        for instant, reading, epoch in rows:
            before = last.get(epoch, 0)
            if instant > rows[0][0]:
                total += reading - before if reading >= before else reading
            last[epoch] = reading
            if self.times and self.times[-1] == instant:
                self.values[-1] = total
            else:
                self.times.append(instant)
                self.values.append(total)

    def at(self, instant):
        i = bisect.bisect_right(self.times, instant)
        if i == 0:
            return Fraction(0)
        if i == len(self.times):
            return Fraction(self.values[-1])
        t0, t1, v0, v1 = self.times[i - 1], self.times[i], self.values[i - 1], self.values[i]
        return v0 + Fraction((v1 - v0) * (instant - t0), t1 - t0)


def minute_of(clock):
    return int(clock[:2]) * 60 + int(clock[3:5])


class Tariff:
    """Tariff and PUE at an instant, and the instants where one of them changes."""

    def __init__(self, prices):
        self.zone = zoneinfo.ZoneInfo(prices.get("time_zone", "UTC"))
        self.pue = sorted((seconds_of(r["from"]), Fraction(r["value"])) for r in prices.get("pue", []))
        self.books = sorted(((seconds_of(b["from"]), b["rules"]) for b in prices.get("energy_tariff", [])),
                            key=lambda b: b[0])
        self.known = {}

    def values(self, instant):
        if instant not in self.known:
            self.known[instant] = self.tariff(instant), self.factor(instant)
        return self.known[instant]

    def factor(self, instant):
        values = [v for t, v in self.pue if t <= instant]
        return values[-1] if values else None if self.pue else Fraction(1)

    def tariff(self, instant):
        book = [rules for t, rules in self.books if t <= instant]
        if not book:
            return None
        local = datetime.datetime.fromtimestamp(instant, self.zone)
        minute = local.hour * 60 + local.minute
        for rule in book[-1]:
            left, right = (minute_of(h) for h in rule["hours"].split("-"))
            if left <= minute < right if left < right else minute >= left or minute < right:
                return Fraction(rule["per_kwh"])
        raise ValueError(f"no rule holds at {local}")

    def price(self, instant):
        tariff, factor = self.values(instant)
        return Fraction(0) if tariff is None or factor is None else tariff * factor

    def edges(self, start, end):
        """Every change of a value between two instants."""
        marks = {t for t, _ in self.pue} | {t for t, _ in self.books}
        clocks = {minute_of(c) % 1440 for _, rules in self.books for r in rules for c in r["hours"].split("-")}
        day = datetime.datetime.fromtimestamp(start - 86400, self.zone).date()
        while (noon := datetime.datetime(day.year, day.month, day.day, 12, tzinfo=self.zone)).timestamp() < end + 86400:
            for clock in clocks:
                at = noon.replace(hour=clock // 60, minute=clock % 60)
                marks |= {int(at.replace(fold=f).timestamp()) for f in (0, 1)}
            marks |= set(self.jumps(int(noon.timestamp()), int(noon.timestamp()) + 90000))
            day += datetime.timedelta(days=1)
        return sorted(m for m in marks if start < m < end and self.values(m) != self.values(m - 1))

    def offset(self, instant):
        return datetime.datetime.fromtimestamp(instant, self.zone).utcoffset()

    def jumps(self, left, right):
        """Where the zone's offset changes; at most once between the two."""
        if self.offset(left) == self.offset(right):
            return
        while right - left > 1:
            middle = (left + right) // 2
            if self.offset(middle) == self.offset(left):
                left = middle
            else:
                right = middle
        yield right


def energy_of(counter, rows, tariff, start, end):
    """Cost of one GPU's energy in nano by tenant, and in sum."""
    first = counter.times[0]
    changes = tariff.edges(first, max(end, first))

    def cumulative(instant):
        instant = max(instant, first)
        marks = [first] + [m for m in changes if m < instant] + [instant]
        return half_even(sum((counter.at(b) - counter.at(a)) * tariff.price(a) * NANO / MJ_PER_KWH
                             for a, b in zip(marks, marks[1:])))

    own = {m for _, b, r, _ in rows for m in (b, r) if m is not None}
    marks = sorted(own | set(changes) | {0, max(end, first) + 1})
    total = {}
    for left, right in zip(marks, marks[1:]):
        if right <= start or left >= end:
            continue
        shares = weights_of(rows, max(left, start), min(right, end))
        for instant, sign in ((min(right, end), 1), (max(left, start), -1)):
            for name, part in apportion(cumulative(instant) - cumulative(left), shares).items():
                total[name] = total.get(name, 0) + sign * part
    return total, cumulative(end) - cumulative(start)


def add(bill, kind, parts):
    for name, nano in parts.items():
        row = bill.setdefault(name, {"capacity": 0, "energy": 0, "shared": 0, "total": 0})
        row[kind] += nano
        row["total"] += nano


def pool_weights(pool, bill, held):
    rule = pool["rule"]
    if rule == "direct-cost":
        return {t: row["capacity"] for t, row in bill.items() if t != FREE and row["capacity"] > 0}
    if rule == "gpu-seconds":
        return {t: w for t, w in held.items() if t != FREE}
    if rule == "even":
        return {t: 1 for t, w in held.items() if t != FREE and w > 0}
    if rule in ("quota", "fixed"):
        return {t: Fraction(w) for t, w in pool["weights"].items()}
    if rule == "none":
        return {}
    raise ValueError(f"pool rule {rule} is not known to the observer")


def capacity_of(asset, index, rows, start, end):
    """What one GPU of an asset costs in nano: (by tenant, the same with idle time shared)."""
    kept, shared = {}, {}
    for begin, finish in asset.stretches():
        left, right = max(begin, start), min(finish, end)
        if left >= right:
            continue

        def cost(instant):
            nano = asset.cost(begin, instant)
            return nano // len(asset.gpus) + (index < nano % len(asset.gpus))

        for instant, sign in ((right, 1), (left, -1)):
            for name, part in apportion(cost(instant), weights_of(rows, begin, instant)).items():
                kept[name] = kept.get(name, 0) + sign * part
        used = {n: w for n, w in weights_of(rows, left, right).items() if n != FREE}
        for name, part in apportion(cost(right) - cost(left), used).items():
            shared[name] = shared.get(name, 0) + part
    return kept, shared


def spent(pool, instant):
    first, last = seconds_of(pool["from"]), seconds_of(pool["to"])
    return half_even(Fraction(pool["cost"]) * NANO * (min(max(instant, first), last) - first) / (last - first))


def invoice(bill, tco):
    cents = half_even(Fraction(tco, 10 ** 7))
    weights = {name: max(0, row["total"]) for name, row in bill.items()}
    return apportion(cents, weights)


def rate(events, assets, prices, pools, start, end, idle=None):
    """The bill of [start, end): {"tco_nano", "by_tenant": tenant -> kind -> nano, and more}."""
    bill, second, held, tco = {}, {}, {}, 0
    idle = idle or pools.get("idle_rule", "keep")
    holders, tariff = allocations_of(events), Tariff(prices)
    owned = {}
    for asset in map(Asset, assets["assets"]):
        asset.gpus.sort(key=str.encode)
        owned.update({gpu: (asset, i) for i, gpu in enumerate(asset.gpus)})
        tco += asset.cost(start, end)
    for gpu in sorted(set(owned) | set(holders)):
        kept, shared = {}, {}
        if gpu in owned:
            kept, shared = capacity_of(*owned[gpu], holders.get(gpu, []), start, end)
        for name, weight in weights_of(holders.get(gpu, []), start, end).items():
            held[name] = held.get(name, 0) + weight
        add(bill, "capacity", kept if idle == "keep" else shared)
        for name, part in shared.items():
            second[name] = second.get(name, 0) + part
    meters = {}
    for event in events:
        if event["type"] == "energy":
            meters.setdefault(event["gpu"], []).append(event)
    for gpu, rows in meters.items():
        parts, total = energy_of(Counter(rows), holders.get(gpu, []), tariff, start, end)
        add(bill, "energy", parts)
        tco += total
    direct = {name: dict(row) for name, row in bill.items()}
    for pool in pools.get("pools", []):
        cost = spent(pool, end) - spent(pool, start)
        add(bill, "shared", apportion(cost, pool_weights(pool, direct, held)))
        tco += cost
    assert tco == sum(row["total"] for row in bill.values()), "the observer's own bill does not add up"
    return {"tco_nano": tco, "by_tenant": bill, "idle_shared_capacity": second,
            "invoice_cents": invoice(bill, tco), "held": held}
