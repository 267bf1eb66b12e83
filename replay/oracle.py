"""An independent rater with fractions: slow, short, and written apart from the server's.

It follows the rules of rating in the project's interfaces: cumulative functions rounded half-even
at both edges, apportionment by largest remainder, ties by name. UTC only.
"""
import bisect
import datetime
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
        return {FREE: total}
    exact = {name: Fraction(total) * weight / weight_sum for name, weight in weights.items()}
    parts = {name: value.numerator // value.denominator for name, value in exact.items()}
    order = sorted(weights, key=lambda n: (-(exact[n] - parts[n]), n.encode()))
    for name in order[:total - sum(parts.values())]:
        parts[name] += 1
    return parts


def year_start(year):
    return int(datetime.datetime(year, 1, 1, tzinfo=datetime.timezone.utc).timestamp())


def plus_years(seconds, years):
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    try:
        return int(moment.replace(year=moment.year + years).timestamp())
    except ValueError:  # 29 February
        return int(moment.replace(year=moment.year + years, month=3, day=1).timestamp())


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

    def edges(self, start, end):
        marks = {self.start, self.end} | {year_start(y) for y in range(1971, 2200)}
        return [start] + sorted(m for m in marks if start < m < end) + [end]


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
    """Cumulative millijoules of one GPU over its energy rows, linear between them."""

    def __init__(self, events):
        rows = sorted((seconds_of(e["t"]), e["seq"], e["epoch"], int(e["energy_mj"])) for e in events)
        self.times, self.values, total, last = [], [], 0, None
        for instant, _, epoch, reading in rows:
            if last is not None:
                fresh = epoch != last[0] or reading < last[1]
                total += reading if fresh else reading - last[1]
            last = (epoch, reading)
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


class Tariff:
    """Price of a kWh with PUE at an instant, and the instants where it may change."""

    def __init__(self, prices):
        self.pue = sorted((seconds_of(r["from"]), Fraction(r["value"])) for r in prices.get("pue", []))
        self.books = sorted(((seconds_of(b["from"]), b["rules"]) for b in prices.get("energy_tariff", [])),
                            key=lambda b: b[0])

    def per_kwh(self, instant):
        pue = [v for t, v in self.pue if t <= instant]
        book = [rules for t, rules in self.books if t <= instant]
        if not book:
            return Fraction(0)
        minute = instant % 86400 // 60
        for rule in book[-1]:
            left, right = (int(h[:2]) * 60 + int(h[3:5]) for h in rule["hours"].split("-"))
            inside = left <= minute < right if left < right else minute >= left or minute < right
            if inside or left == right:
                return Fraction(rule["per_kwh"]) * (pue[-1] if pue else 1)
        return Fraction(0)

    def edges(self, start, end):
        """Every change of value between two instants."""
        marks = {t for t, _ in self.pue} | {t for t, _ in self.books}
        for day in range(start // 86400, end // 86400 + 1):
            for _, rules in self.books:
                for rule in rules:
                    for clock in rule["hours"].split("-"):
                        marks.add(day * 86400 + int(clock[:2]) * 3600 + int(clock[3:5]) * 60)
        return sorted(m for m in marks if start < m < end and self.per_kwh(m) != self.per_kwh(m - 1))


def energy_of(counter, rows, tariff, start, end):
    """Cost of one GPU's energy in nano, by tenant."""
    own = {m for _, b, r, _ in rows for m in (b, r) if m is not None}
    first = counter.times[0]
    # Cumulative cost from the first row on, in exact fractions, rounded at both edges.
    def cumulative(instant):
        instant = max(instant, first)
        marks = [first] + tariff.edges(first, instant) + [instant]
        return half_even(sum((counter.at(b) - counter.at(a)) * tariff.per_kwh(a) * NANO / MJ_PER_KWH
                             for a, b in zip(marks, marks[1:])))
    marks = sorted({start, end} | {m for m in own if start < m < end} | set(tariff.edges(start, end)))
    total = {}
    for left, right in zip(marks, marks[1:]):
        cost = cumulative(right) - cumulative(left)
        for name, part in apportion(cost, weights_of(rows, left, right)).items():
            total[name] = total.get(name, 0) + part
    return total


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
    raise ValueError(f"pool rule {rule} is not known to the observer")


def rate(events, assets, prices, pools, start, end):
    """The bill of [start, end): {"tco_nano", "by_tenant": tenant -> kind -> nano}."""
    bill, held = {}, {}
    holders, tariff = allocations_of(events), Tariff(prices)
    for asset in map(Asset, assets["assets"]):
        marks = asset.edges(start, end)
        for left, right in zip(marks, marks[1:]):
            per_gpu = apportion(asset.cost(left, right), {g: 1 for g in asset.gpus})
            for gpu in asset.gpus:
                weights = weights_of(holders.get(gpu, []), left, right)
                add(bill, "capacity", apportion(per_gpu.get(gpu, 0), weights))
                for name, weight in weights.items():
                    held[name] = held.get(name, 0) + weight
    meters = {}
    for event in events:
        if event["type"] == "energy":
            meters.setdefault(event["gpu"], []).append(event)
    for gpu, rows in meters.items():
        add(bill, "energy", energy_of(Counter(rows), holders.get(gpu, []), tariff, start, end))
    direct = {name: dict(row) for name, row in bill.items()}
    for pool in pools.get("pools", []):
        first, last = seconds_of(pool["from"]), seconds_of(pool["to"])
        cost = Fraction(pool["cost"]) * NANO
        def spent(instant):
            return half_even(cost * (min(max(instant, first), last) - first) / (last - first))
        add(bill, "shared", apportion(spent(end) - spent(start), pool_weights(pool, direct, held)))
    return {"tco_nano": sum(row["total"] for row in bill.values()), "by_tenant": bill}
