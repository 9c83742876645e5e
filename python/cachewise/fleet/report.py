"""One self-contained page of a merged fleet."""

import json
import math
from pathlib import Path
from typing import Any

import jinja2

from . import errors, files
from .install import index
from .merge import OPERATIONS, RESULT
from .records import SIZES

PAGE = "fleet.html"
UNTUNED = "untuned.json"
# One cell of a picture, in pixels.
WIDE, HIGH, LEFT, TOP = 26, 20, 76, 18


def write(directory: Path, output: Path | None) -> Path:
    """Writes the page; returns where."""
    found = index(directory)
    path = output or directory / RESULT / PAGE
    files.write_bytes(path, page(found, _untuned(directory)).encode())
    return path


def _untuned(directory: Path) -> list[dict[str, str]]:
    try:
        listed: list[dict[str, str]] = json.loads((directory / UNTUNED).read_text())
    except (OSError, ValueError):
        return []
    return listed


def page(found: dict[str, Any], untuned: list[dict[str, str]]) -> str:
    """The page's HTML."""
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["percent"] = lambda value, digits=0: f"{100 * value:.{digits}f} %"
    environment.filters["gain"] = errors.gain
    environment.filters["counted"] = errors.counted
    return environment.from_string(TEMPLATE).render(
        found=found,
        untuned=untuned,
        operations=OPERATIONS,
        pictures=[_pictures(one) for one in found["classes"]],
    )


def _pictures(one: dict[str, Any]) -> list[dict[str, Any]]:
    if all(row["kernel"] == "libc" for row in one["rows"]):
        return []
    return [
        {
            "title": "Speed against libc in the hosts' middle",
            "svg": _strip(one["rows"], lambda row: (_speed(row["ratio"]), _gain(row))),
        },
        {
            "title": "Pairs of hosts that agree",
            "svg": _strip(one["rows"], lambda row: (_share(row["agree"]), f"{100 * row['agree']:.0f}")),
        },
        {
            "title": "Hosts that are served",
            "svg": _strip(one["rows"], lambda row: (_share(row["served"]), f"{100 * row['served']:.0f}")),
        },
    ]


def _gain(row: dict[str, Any]) -> str:
    gain = 100 * (1 / row["ratio"] - 1)
    return "" if row["kernel"] == "libc" else f"{gain:+.0f}"


def _speed(ratio: float) -> str:
    gain = min(max(-math.log(ratio) / math.log(1.5), -1), 1)
    if abs(gain) < 0.01:
        return "hsl(210 20% 96%)"
    hue, depth = (150, gain) if gain > 0 else (15, -gain)
    return f"hsl({hue} 60% {97 - 47 * depth:.0f}%)"


def _share(share: float) -> str:
    lost = min((1 - share) / 0.5, 1)
    if lost < 0.01:
        return "hsl(210 20% 96%)"
    return f"hsl(15 70% {97 - 47 * lost:.0f}%)"


def _strip(rows: list[dict[str, Any]], draw: Any) -> str:
    width, height = LEFT + WIDE * len(SIZES) + 4, TOP + HIGH * len(OPERATIONS) + 4
    parts = [f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">']
    for number, size in enumerate(SIZES):
        if number % 2 == 0:
            x = LEFT + WIDE * (number + 0.5)
            parts.append(f'<text x="{x}" y="{TOP - 6}" text-anchor="middle">{_short(size)}</text>')
    for line, operation in enumerate(OPERATIONS):
        y = TOP + HIGH * line
        parts.append(f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{operation}</text>')
    for row in rows:
        x = LEFT + WIDE * SIZES.index(row["size"])
        y = TOP + HIGH * OPERATIONS.index(row["operation"])
        colour, text = draw(row)
        said = (
            f"{row['operation']} {_short(row['size'])}: {row['kernel']}, {row['ratio']:.2f} of libc's time"
            f" (tenths {row['low']:.2f} .. {row['high']:.2f}), {100 * row['agree']:.0f} % agree,"
            f" {100 * row['served']:.0f} % are served"
        )
        parts.append(
            f'<g><title>{said}</title><rect x="{x}" y="{y}" width="{WIDE - 1}" height="{HIGH - 1}"'
            f' fill="{colour}"/><text class="in" x="{x + WIDE / 2 - 0.5}" y="{y + 14}"'
            f' text-anchor="middle">{text}</text></g>'
        )
    return "".join([*parts, "</svg>"])


def _short(size: int) -> str:
    for unit, shift in (("M", 20), ("K", 10)):
        if size >= 1 << shift:
            return f"{size >> shift}{unit}"
    return str(size)


TEMPLATE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Cachewise: a fleet</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body { font: 15px/1.5 system-ui, sans-serif; color: #1c2430; margin: 2em auto; max-width: 96em; padding: 0 1em }
h1 { font-size: 1.6em; margin-bottom: 0 } h2 { font-size: 1.15em; margin: 2em 0 .2em }
table { border-collapse: collapse; margin: .6em 0; display: block; overflow-x: auto } th, td { padding: .25em .8em; text-align: left; vertical-align: top }
th { font-weight: 600; border-bottom: 2px solid #c7d0dc } td { border-bottom: 1px solid #e4e9ef }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
td.k { white-space: nowrap } figure { display: inline-block; margin: .6em 1em .6em 0 }
.no { color: #a33a12 } .dim { color: #5b6878 } svg { font: 11px system-ui, sans-serif; max-width: 100%; height: auto }
svg .in { font-size: 10px; fill: #22303f } figcaption { font-size: .9em; color: #5b6878 }
</style></head><body>
<h1>A fleet of {{ found.hosts|counted("host") }}</h1>
<p class="dim">Classes of hosts: {{ found.classes|length }}, {{ found.classes|selectattr("profile")|list|length }}
with a profile; {{ found.outliers|length|counted("outlier") }}; not tuned: {{ untuned|length }};
damaged files left out: {{ found.damaged|length }}.</p>
{% if found.hosts == 1 %}<p>One host is no fleet: what it shows holds for it alone, and it has a profile of its own.</p>{% endif %}
<table><thead><tr><th>CPU</th><th>microcode, kernel, libc</th><th class="n">hosts</th><th class="n">agreement,<br>lowest tenth</th>
<th class="n">served,<br>lowest tenth</th>
{% for name in operations %}<th class="n">{{ name }}</th>{% endfor %}<th>profile</th></tr></thead><tbody>
{% for one in found.classes %}
<tr><td class="k">{{ one.cpu }}{{ " " + one.letter if one.letter }}<br><span class="dim">{{ one.cpu_name }}</span></td>
<td class="k">{{ one.microcode or "unknown" }}<br>{{ one.kernel }}<br>{{ one.libc }}</td><td class="n">{{ one.hosts }}</td>
{% if one.rows %}<td class="n">{{ one.agreement|percent(1) }}<br>below {{ one.agreement_p10|percent(1) }}</td>
<td class="n">{{ one.served|percent(1) }}<br>below {{ one.served_p10|percent(1) }}</td>
{% for name in operations %}<td class="n">{{ one.gain[name]|gain }}</td>{% endfor %}
{% else %}<td colspan="{{ 2 + operations|length }}"></td>{% endif %}
<td>{% if one.profile %}yes{% else %}<span class="no">none: {{ one.reason }}</span>{% endif %}</td></tr>
{% endfor %}
</tbody></table>
<p class="dim"><b>Agreement</b>: the share of sizes at which two hosts make the same choice: the same kernel, or two
whose times differ by at most 3 % on one of them. <b>Served</b>: the share of sizes at which a host's own figures
allow that the profile's kernel takes at most 3 % more time than the one the host chose for itself. A class has a
profile where both are 90 % or more. The operations' columns are speed gained over libc, in the geometric mean over
256 B to 64 MiB.</p>
{% for one in found.classes %}{% if pictures[loop.index0] %}
<h2>{{ one.cpu }}{{ " " + one.letter if one.letter }} <span class="dim">{{ one.hosts|counted("host") }}, {{ one.kernel }}</span></h2>
{% for picture in pictures[loop.index0] %}<figure>{{ picture.svg|safe }}<figcaption>{{ picture.title }}, in %</figcaption></figure>
{% endfor %}
<p class="dim">Agree least: {% for name, share in one.least %}{{ name }} {{ share|percent }}{{ ", " if not loop.last }}{% endfor %}.</p>
{% endif %}{% endfor %}
<h2>Outliers to look at</h2>
{% if found.outliers %}<table><thead><tr><th>host</th><th>CPU</th><th class="n">times as far off as usual</th><th>what differs</th></tr></thead><tbody>
{% for one in found.outliers %}<tr><td>{{ one.host }}</td><td>{{ one.cpu }}</td><td class="n">{{ "%.1f"|format(one.times) }}</td><td>{{ one.why }}</td></tr>
{% endfor %}</tbody></table>{% else %}<p>None.</p>{% endif %}
{% if untuned %}<h2>Hosts that were not tuned</h2><table><tbody>
{% for one in untuned %}<tr><td>{{ one.host }}</td><td>{{ one.why }}</td></tr>{% endfor %}</tbody></table>{% endif %}
{% if found.damaged %}<h2>Damaged files</h2><table><tbody>
{% for one in found.damaged %}<tr><td>{{ one.file }}</td><td>{{ one.why }}</td></tr>{% endfor %}</tbody></table>{% endif %}
</body></html>
"""
