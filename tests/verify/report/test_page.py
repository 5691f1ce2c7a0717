"""The HTML report in a real browser: layout, stepper, labels, nothing loaded."""

import re
from pathlib import Path

import pytest

from models.catalogue import find_case
from models.groups import GroupScenario
from verify.cli.checking import Question, check_scenario
from verify.cli.report import check_page
from verify.report.page import inline_svg, render_page, script_json

from .browser import (
    FAINT,
    FAINT_IN_PICTURES,
    NAMELESS,
    OVERLAPS,
    PICTURED,
    TOO_WIDE,
    browser,
    watched_page,
)

__all__ = ["browser"]

CASES = (
    "rival-a-lane-aware",
    "published-deadlock",
    "late-join-burst",
    "control-dense",
    "capacity-one-starvation",
    "partial-deadlock",
    "stale-orphan-ticket",
    "groups",
)
GROUPS = GroupScenario.of({"groups": "d,e;d,d", "full_stages": 2, "stale": "no_cancel"})


@pytest.fixture(scope="module")
def reports(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    files = {}
    for name in CASES:
        scenario = GROUPS if name == "groups" else find_case(name).scenario
        asked = None if name == "groups" else find_case(name).asked
        result = check_scenario(scenario, question=Question.of(scenario, asked))
        files[name] = folder / f"{name}.html"
        files[name].write_text(render_page(check_page(result)), encoding="utf-8")
    return files


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", CASES)
def test_layout_has_no_faults(browser, reports, name, width, scheme):
    page, complaints, addresses = watched_page(browser, width, scheme)
    page.goto(reports[name].as_uri())
    for key in ("End", "ArrowLeft"):
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(TOO_WIDE) == []
        assert page.evaluate(OVERLAPS) == []
        assert page.evaluate(NAMELESS) == []
        assert page.evaluate(FAINT) == []
        page.keyboard.press(key)
    assert page.evaluate(PICTURED) > 5
    assert page.evaluate(FAINT_IN_PICTURES) == []
    assert complaints == []
    assert addresses == [reports[name].as_uri()]
    page.close()


def test_on_a_phone_the_controls_fit_one_line_and_keys_are_not_spoken_of(browser, reports):
    for name, hinted, width in (("control-dense", False, 390), ("control-dense", True, 1280)):
        page, _, _ = watched_page(browser, width, "light")
        page.goto(reports[name].as_uri())
        tops = page.eval_on_selector_all(
            ".controls button", "all => all.map((e) => e.getBoundingClientRect().top)"
        )
        assert len(set(tops)) == 1
        assert page.is_visible(".keys") is hinted
        assert page.is_visible(".sideways") is not hinted
        assert "One run among all timings" in page.inner_text(".about")
        page.close()


def test_labels_that_would_be_faint_are_found(browser, reports, tmp_path):
    """The check of contrasts in pictures can fail."""
    text = reports["rival-a-lane-aware"].read_text(encoding="utf-8")
    ink = re.search(r"fill: (#fdfdfd)", text)
    assert ink is not None
    faint = tmp_path / "faint.html"
    faint.write_text(text.replace("#fdfdfd", "#88aacc"), encoding="utf-8")
    page, _, _ = watched_page(browser, 1280, "light")
    page.goto(faint.as_uri())
    assert page.evaluate(FAINT_IN_PICTURES) != []
    page.close()


def test_the_scheme_changes_the_page_and_its_drawings(browser, reports):
    backgrounds = []
    for scheme in ("light", "dark"):
        page, _, _ = watched_page(browser, 1280, scheme)
        page.goto(reports["published-deadlock"].as_uri())
        background = "getComputedStyle(document.body).backgroundColor"
        ink = "getComputedStyle(document.querySelector('.drawing svg text')).fill"
        backgrounds.append((page.evaluate(background), page.evaluate(ink)))
        page.close()
    assert backgrounds[0][0] != backgrounds[1][0]
    assert backgrounds[0][1] != backgrounds[1][1]


def test_stepping_by_buttons_keys_and_links(browser, reports):
    page, complaints, _ = watched_page(browser, 1280, "light")
    page.goto(reports["rival-a-lane-aware"].as_uri())
    assert page.inner_text("#position") == "Step 0 of 7"
    assert page.is_disabled("#previous")
    page.click("#next")
    assert page.inner_text("#step-title").startswith("Instant 1: attention_done")
    assert page.url.endswith("#step-1")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#position") == "Step 3 of 7"
    assert page.inner_text("#step-fate") == "No continuation completes from here."
    assert "refused: sealed" in page.inner_text("#handled")
    assert "sealed until every owner leaves" in page.inner_text("#waits")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#step-fate") == "A run can still complete from here."
    page.keyboard.press("End")
    assert page.is_disabled("#next")
    assert "would be admitted now" in page.inner_text("#waits")
    page.keyboard.press("Home")
    assert page.inner_text("#step-title") == "Start"
    page.click("#instants li:nth-child(6) a")
    page.wait_for_url("**#step-5")
    page.wait_for_function("document.querySelector('#position').innerText === 'Step 5 of 7'")
    assert page.get_attribute("#instants li:nth-child(6) a", "aria-current") == "step"
    assert complaints == []
    page.close()


def test_a_link_to_a_step_opens_there(browser, reports):
    page, _, _ = watched_page(browser, 1280, "light")
    page.goto(reports["rival-a-lane-aware"].as_uri() + "#step-4")
    assert page.inner_text("#position") == "Step 4 of 7"
    page.goto(reports["rival-a-lane-aware"].as_uri() + "#step-99")
    page.reload()
    assert page.inner_text("#position") == "Step 7 of 7"
    page.close()


def test_changed_parts_choices_and_state_are_shown(browser, reports):
    page, _, _ = watched_page(browser, 1280, "light")
    page.goto(reports["rival-a-lane-aware"].as_uri() + "#step-3")
    changed = page.eval_on_selector_all("dt.changed", "all => all.map((e) => e.innerText)")
    assert [text.split()[0] for text in changed].count("active") == 2
    assert all("changed" in text for text in changed)
    cards = page.eval_on_selector_all(".card h5", "all => all.map((e) => e.innerText)")
    assert cards == ["stage 0", "stage 1", "events to come"]
    names = page.eval_on_selector_all(".card:first-child dt", "all => all.map((e) => e.innerText)")
    assert [name.split("\n")[0].removesuffix(" changed") for name in names] == [
        "active",
        "FIFO",
        "forward group",
        "lane 0",
        "lane 1",
    ]
    choices = page.inner_text("#choices")
    assert "taken here" in choices
    assert choices.count("never completes") == 3
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#choices").count("can still complete") == 2
    page.close()


def test_the_page_marks_where_it_was_lost_and_links_there(browser, reports):
    page, _, _ = watched_page(browser, 1280, "light")
    page.goto(reports["rival-a-lane-aware"].as_uri())
    assert page.inner_text("#instants .lost") == "no continuation completes from here on"
    page.click("#no-return a")
    assert page.inner_text("#position") == "Step 3 of 7"
    page.close()


def test_a_page_is_small_and_refers_to_nothing(reports):
    for file in reports.values():
        text = file.read_text(encoding="utf-8")
        assert len(text) < 200_000
        for sign in ("<link", "@import", "url(http", 'src="', "//cdn"):
            assert sign not in text, sign


def test_json_cannot_end_its_script():
    assert "</script" not in script_json({"a": "</script><b>"})


def test_inlined_drawings_have_ids_of_their_own():
    svg = '<?xml?><svg id="a"><metadata>x</metadata><path id="b"/>'
    svg += '<use href="#b" clip="url(#a)"/></svg>'
    assert inline_svg(svg, "d1") == (
        '<svg aria-hidden="true" focusable="false" id="d1-a"><path id="d1-b"/>'
        '<use href="#d1-b" clip="url(#d1-a)"/></svg>'
    )


@pytest.mark.parametrize(
    ("fault", "detector"),
    [
        ("#position { display: inline-block; min-width: 3000px }", TOO_WIDE),
        (".card { margin-bottom: -80px; margin-right: -80px }", OVERLAPS),
        (".subtitle { color: #888888; background: #999999 }", FAINT),
    ],
)
def test_planted_layout_faults_are_found(browser, reports, fault, detector):
    page, _, _ = watched_page(browser, 1280, "light")
    page.goto(reports["rival-a-lane-aware"].as_uri())
    assert page.evaluate(detector) == []
    page.evaluate("(css) => document.querySelector('style').append(css)", fault)
    assert page.evaluate(detector) != []
    page.close()


def test_a_nameless_button_is_found(browser, reports):
    page, _, _ = watched_page(browser, 1280, "light")
    page.goto(reports["rival-a-lane-aware"].as_uri())
    page.evaluate("document.getElementById('next').textContent = ''")
    assert len(page.evaluate(NAMELESS)) == 1
    page.close()
