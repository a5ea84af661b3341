"""What rows of bench/predictions.csv say about predictions, as Markdown."""
import statistics

SAME_PLACEMENT = 1.6  # times the time of a word from one core to another, as predict/core_trip.cc has it
HEAD = """| rows | number | mean error | median error | 95th percentile | measured ÷ predicted, 80% | inside the interval |
|---|---|---|---|---|---|---|
"""


def percentile(values, part):
    values = sorted(values)
    return values[round(part * (len(values) - 1))]


def errors(rows):
    return [abs(float(row["ratio"]) - 1) * 100 for row in rows]


def line(name, rows):
    off = errors(rows)
    inside = sum(float(r["low"]) <= float(r["measured"]) <= float(r["high"]) for r in rows)
    return (f"| {name} | {len(rows)} | {statistics.mean(off):.1f}% | {statistics.median(off):.1f}% | {percentile(off, 0.95):.1f}% | "
            f"{percentile([float(r['ratio']) for r in rows], 0.1):.2f} to {percentile([float(r['ratio']) for r in rows], 0.9):.2f} | "
            f"{100 * inside / len(rows):.0f}% |")


def table(rows, keys):
    text = HEAD + line("all", rows) + "\n"
    for key in keys:
        for value in sorted({row[key] for row in rows}):
            text += line(value if key != "limited_by" else f"limited by {value}", [row for row in rows if row[key] == value]) + "\n"
    return text


def in_usual_placement(rows):
    """Those that were measured with the cores where they were for most rows: elsewhere the machine is another one."""
    trips = [float(row["core_trip_ns"]) for row in rows if row["core_trip_ns"]]
    usual = statistics.median(trips) if trips else 0
    return [row for row in rows if not row["core_trip_ns"] or usual / SAME_PLACEMENT < float(row["core_trip_ns"]) < usual * SAME_PLACEMENT]


def tau(rows):
    """Kendall's tau of the order of ways within each workload."""
    agree = pairs = 0
    for model in {row["model"] for row in rows}:
        some = [(float(r["predicted"]), float(r["measured"])) for r in rows if r["model"] == model]
        for i, (p, m) in enumerate(some):
            for q, n in some[:i]:
                if p != q and m != n:
                    pairs += 1
                    agree += 1 if (p < q) == (m < n) else -1
    return agree / pairs if pairs else 1


def regrets(rows):
    """What the way that was expected to be the fastest lost beside the one that was, of ways with as many workers and the same links."""
    ways = {}
    for row in rows:
        ways.setdefault((row["model"], row["workers"], row["link"], row["wire"]), []).append((float(row["predicted"]), float(row["measured"])))
    return [1 - max(some)[1] / max(measured for _, measured in some) for some in ways.values() if len(some) > 1]


def order_text(rows):
    usual = in_usual_placement(rows)
    lost = [100 * each for each in regrets(usual)]
    return (f"With the cores in their usual placement ({len(usual)} of the rows), the order of the ways within a workload agrees with the\n"
            f"measured order by Kendall's τ = {tau(usual):.2f}.\n\n"
            f"{len(lost)} groups of rows differ only in the way: they have one workload, number of workers and link. In these groups the way that\n"
            f"`--strategy auto` takes was slower than the fastest way by {statistics.mean(lost):.1f}% (mean), {statistics.median(lost):.1f}% (median), "
            f"{percentile(lost, 0.95):.1f}% (95th percentile) and\n{max(lost):.1f}% at most.\n")
