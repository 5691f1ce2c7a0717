"""A comparison as one self-contained HTML page."""

import jinja2

from verify.lanescompare.compare import Comparison
from verify.lanescompare.document import document
from verify.lanescompare.pictures import pictures
from verify.lanescompare.prose import cell, findings, headline

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Lanes, real and simulated: {{ model }}</title>
<style>
:root { color-scheme: light dark; --line: #8886; --good: #18794e; --bad: #c62828; --info: #6b6b6b; }
@media (prefers-color-scheme: dark) { :root { --good: #4cc38a; --bad: #ff8a80; --info: #aaa; } }
body { font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; padding: 1rem; max-width: 1280px; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: 0.25rem 0.6rem; text-align: left; }
td { white-space: nowrap; } td.value { white-space: normal; min-width: 11rem; }
.MATCH, .HOLDS, .PASS { color: var(--good); } .MISMATCH, .LOST { color: var(--bad); }
.INFORMATIONAL { color: var(--info); }
figure { margin: 1rem 0; } figure svg { background: #fff; min-width: 900px; height: auto; }
figcaption { font-size: 0.85rem; }
</style>
</head>
<body>
<main>
<h1 class="{{ status }}">{{ headline }}</h1>
{% if findings %}<ul>
{% for line in findings %}<li>{{ line }}</li>
{% endfor %}</ul>{% endif %}
<p>Real: forward traces of the engine. {{ after }} and {{ before }}: simulated runs of the same
burst.</p>
<h2>Gap table</h2>
<div class="scroll" role="region" aria-label="Gap table" tabindex="0"><table>
<thead><tr><th scope="col">check</th><th scope="col">status</th><th scope="col">burst</th>
<th scope="col">round</th><th scope="col">metric</th><th scope="col">real</th>
<th scope="col">{{ after }}</th><th scope="col">{{ before }}</th></tr></thead>
<tbody>
{% for row in rows %}<tr><td>{{ row.check }}</td><td class="{{ row.status }}">{{ row.status }}</td>
<td>{{ row.burst }}</td><td>{{ row.round }}</td><td>{{ row.metric }}</td>
{% for value in (row.vllm, row.after, row.before) %}<td class="value">{{ cell(value) }}</td>
{% endfor %}</tr>
{% endfor %}</tbody></table></div>
<h2>Where non-overlap comes from</h2>
<div class="scroll" role="region" aria-label="Decomposition" tabindex="0"><table>
<thead><tr>{% for name in decomposition_fields %}<th scope="col">{{ name.replace("_", " ") }}</th>
{% endfor %}</tr></thead><tbody>
{% for name, values in decomposition.items() %}<tr><th scope="row">{{ name }}</th>
{% for value in values.values() %}<td>{{ "-" if value is none else value }}</td>
{% endfor %}</tr>
{% endfor %}</tbody></table></div>
<h2>Pictures</h2>
{% for stem, caption, svg in pictures %}<figure id="{{ stem }}">
<div class="scroll" role="img" aria-label="{{ caption }}">{{ svg | safe }}</div>
<figcaption>{{ caption }}</figcaption></figure>
{% endfor %}</main>
</body>
</html>
"""


def to_html(comparison: Comparison) -> str:
    """Return the page: verdict, findings, gap table, decomposition and pictures."""
    after, before = comparison.bursts[0].after, comparison.bursts[0].before
    data = document(comparison)["decomposition"]
    decomposition = data if isinstance(data, dict) else {}
    first = next(iter(decomposition.values()), {})
    return (
        jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
        .from_string(_PAGE)
        .render(
            model=comparison.model,
            status=comparison.status,
            headline=headline(comparison),
            findings=findings(comparison),
            after=after.ledger.admission,
            before=before.ledger.admission,
            rows=comparison.rows,
            cell=cell,
            decomposition=decomposition,
            decomposition_fields=["round", *(first if isinstance(first, dict) else ())],
            pictures=[(stem, caption, _body(svg)) for stem, caption, svg in pictures(comparison)],
        )
    )


def _body(svg: str) -> str:
    """Drop the XML prologue, which HTML does not take."""
    return svg[svg.index("<svg") :]
