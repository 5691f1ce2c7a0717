"""The same page over a live model: in a browser, and by foreign requests."""

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from models.catalogue import find_case
from models.schedule import walk_path
from verify.cli.checking import open_path
from verify.cli.explore import Exploration
from verify.path import decode
from verify.report.server import PageServer

from .browser import FAINT, NAMELESS, TOO_WIDE, browser, watched_page

__all__ = ["browser"]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return tmp_path / "path.txt"


@pytest.fixture
def server(saved: Path) -> Iterator[PageServer]:
    exploration = Exploration(find_case("rival-a-lane-aware").scenario, saved)
    answers = {"/story": exploration.story, "/save": exploration.save}
    server = PageServer(0, exploration.page, answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def pick(page, text: str, position: str) -> None:
    page.get_by_role("button", name=text, exact=True).click()
    expect(page.locator("#position")).to_have_text(position)


def test_a_person_walks_into_the_lost_wakeup_steps_back_and_saves(browser, server, saved):
    page, complaints, addresses = watched_page(browser, 1280, "light")
    page.goto(server.address)
    first = "attention_done(lane {0}, batch 0, stage 0, layer 0)"
    pick(page, f"{first.format(1)} together with {first.format(0)}", "Step 1 of 1")
    wave = "wave_end(stage 0, layer 0, of lane 0 batch 0 + lane 1 batch 0)"
    pick(page, wave, "Step 2 of 2")
    fates = page.inner_text("#choices")
    assert fates.count("never completes") == 1
    pick(page, "stage_end(lane 1, batch 0, stage 0)", "Step 3 of 3")
    assert page.inner_text("#step-fate") == "No continuation completes from here."
    assert "refused: sealed" in page.inner_text("#handled")
    page.click("#previous")
    page.click("#undo")
    expect(page.locator("#position")).to_have_text("Step 2 of 2")
    pick(page, "stage_end(lane 1, batch 0, stage 0)", "Step 3 of 3")
    step = 3
    while page.locator("#choices button").count():
        step += 1
        page.locator("#choices button").first.click()
        expect(page.locator("#position")).to_have_text(f"Step {step} of {step}")
    assert page.inner_text("#message") == "The run is drained."
    assert "Lost wake-up" in page.inner_text("#why")
    page.click("#save")
    expect(page.locator("#message")).to_contain_text("Saved to")
    word = saved.read_text().strip()
    assert page.inner_text("#command") == f"frontier-verify replay {word}"
    scenario, path = open_path(word)
    assert walk_path(scenario, path).classification == "lost_wakeup"
    assert len(decode(word).actions) == step
    assert complaints == []
    assert all(address.startswith(server.address) for address in addresses)
    page.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_live_page_has_no_layout_faults(browser, server, width):
    page, complaints, _ = watched_page(browser, width, "dark")
    page.goto(server.address)
    for check in (TOO_WIDE, NAMELESS, FAINT):
        assert page.evaluate(check) == []
    assert complaints == []
    page.close()


def ask(server: PageServer, method: str, path: str, body: str = "", **headers: str):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    sent = {
        "Content-Type": "application/json",
        **{k.replace("_", "-"): v for k, v in headers.items()},
    }
    connection.request(method, path, body, sent)
    answer = connection.getresponse()
    content = answer.read().decode()
    connection.close()
    return answer.status, content


def test_questions_that_are_wrong_are_refused_with_the_reason(server, saved):
    for body, message in (
        ("{", "Expecting"),
        ("[]", "must be a JSON object"),
        ("{}", "actions must be a list of numbers"),
        ('{"actions": ["x"]}', "actions must be a list of numbers"),
        ('{"actions": [true]}', "actions must be a list of numbers"),
        ('{"actions": [99]}', "step 0 has 3 choices, got number 99"),
        ('{"actions": [-1]}', "step 0 has 3 choices"),
    ):
        for address in ("/story", "/save"):
            status, content = ask(server, "POST", address, body)
            assert (status, message in json.loads(content)["error"]) == (400, True)
    assert not saved.exists()


def test_only_its_own_page_is_answered(server):
    assert ask(server, "GET", "/")[0] == 200
    assert ask(server, "GET", "/etc/passwd")[0] == 404
    assert ask(server, "POST", "/other", "{}")[0] == 404
    assert ask(server, "GET", "/", Host="attacker.example")[0] == 403
    body = '{"actions": []}'
    assert ask(server, "POST", "/save", body, Origin="http://attacker.example")[0] == 403
    assert ask(server, "POST", "/story", body, Content_Type="text/plain")[0] == 400


def test_it_listens_on_this_machine_only(server):
    assert server.server_address[0] == "127.0.0.1"
