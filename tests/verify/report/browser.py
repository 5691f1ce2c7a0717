"""A headless Chromium for tests; skipped, with the reason, where there is none."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((found for name in NAMES if (found := shutil.which(name))), None)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


def watched_page(browser: Browser, width: int, scheme: str) -> tuple[Page, list[str], list[str]]:
    """A page with what it complains about, and every address it asks for."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    complaints: list[str] = []
    addresses: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: addresses.append(request.url))
    return page, complaints, addresses


TOO_WIDE = """() => {
  const scrolls = (e) => e.closest('.drawing, pre, #instants');
  return [...document.querySelectorAll('body *')]
    .filter((e) => !scrolls(e) && !e.closest('.skip, .sr, script, style'))
    .filter((e) => e.getBoundingClientRect().right > window.innerWidth + 1)
    .map((e) => e.tagName + '#' + e.id + '.' + e.className);
}"""
"""Elements that stick out to the right of the window."""

OVERLAPS = """() => {
  const boxes = [...document.querySelectorAll('.card, .controls button, figure')];
  const found = [];
  for (const a of boxes) for (const b of boxes) {
    if (a === b || a.contains(b) || b.contains(a)) continue;
    const [r, s] = [a.getBoundingClientRect(), b.getBoundingClientRect()];
    const x = Math.min(r.right, s.right) - Math.max(r.left, s.left);
    const y = Math.min(r.bottom, s.bottom) - Math.max(r.top, s.top);
    const sticky = a.closest('.controls') !== b.closest('.controls');
    if (x > 1 && y > 1 && !sticky) found.push(a.textContent.slice(0, 30));
  }
  return found;
}"""
"""Cards, buttons and figures that lie over each other."""

NAMELESS = """() => [...document.querySelectorAll('button, a, nav, [role=img], section')]
  .filter((e) => !e.closest('[hidden]'))
  .filter((e) => !(e.textContent.trim() || e.getAttribute('aria-label')) ||
    (e.matches('nav, [role=img], section') &&
      !(e.getAttribute('aria-label') || e.getAttribute('aria-labelledby'))))
  .map((e) => e.outerHTML.slice(0, 80))"""
"""Controls, pictures and landmarks that a screen reader could not name."""

FAINT = """() => {
  const parse = (c) => c.match(/[\\d.]+/g).map(Number);
  const channel = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const behind = (e) => {
    for (let at = e; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return parse(getComputedStyle(document.body).backgroundColor);
  };
  return [...document.querySelectorAll('main *, header *')]
    .filter((e) => !e.closest('svg, [hidden], :disabled') && e.checkVisibility())
    .filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()))
    .map((e) => {
      const [a, b] = [light(parse(getComputedStyle(e).color)), light(behind(e))];
      return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.outerHTML.slice(0, 80)];
    })
    .filter(([ratio]) => ratio < 4.5);
}"""
"""Text whose contrast with what is behind it is below 4.5 (WCAG AA)."""

FAINT_IN_PICTURES = """() => {
  const parse = (c) => c.match(/[\\d.]+/g).map(Number);
  const channel = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const contrast = (a, b) =>
    (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  const paper = parse(getComputedStyle(document.body).backgroundColor);
  const over = (shape, below) => {
    const style = getComputedStyle(shape);
    const alpha = Number(style.fillOpacity) * Number(style.opacity);
    return parse(style.fill).slice(0, 3).map((v, i) => alpha * v + (1 - alpha) * below[i]);
  };
  const behind = (text) => {
    text.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
    const box = text.getBoundingClientRect();
    const hit = document.elementsFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    const shapes = hit.filter((e) => text.ownerSVGElement.contains(e))
      .filter((e) => ["path", "rect", "use"].includes(e.localName))
      .filter((e) => !["none", ""].includes(getComputedStyle(e).fill));
    if (shapes.some((e) => getComputedStyle(e).fill.startsWith("url"))) {
      const ground = shapes.findIndex((e) => !getComputedStyle(e).fill.startsWith("url"));
      const hatched = shapes.findIndex((e) => getComputedStyle(e).fill.startsWith("url"));
      if (ground === -1 || hatched < ground) return null;
    }
    return shapes.reverse().filter((e) => !getComputedStyle(e).fill.startsWith("url"))
      .reduce((below, e) => over(e, below), paper);
  };
  return [...document.querySelectorAll(".drawing svg text")]
    .filter((e) => e.textContent.trim() && e.checkVisibility())
    .map((e) => {
      const ground = behind(e);
      const ratio = ground && contrast(parse(getComputedStyle(e).fill), ground);
      return [ratio, e.textContent, ground];
    })
    .filter(([ratio]) => ratio === null || ratio < 4.5);
}"""
"""Text in pictures whose contrast with the shapes below it, put together, is below 4.5.

Null: the text lies on hatching without a ground of its own.
"""

PICTURED = "() => document.querySelectorAll('.drawing svg text').length"
"""Number of texts in pictures."""
