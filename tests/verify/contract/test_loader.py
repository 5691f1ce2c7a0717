"""Loading in isolation: packages called like ours, late imports, and clear messages."""

import sys

import pytest

import frontier.context
import frontier.tickets
from tests.verify.contract.samples import foreign
from verify.contract.errors import ContractInputError
from verify.contract.loader import load

PLAIN = """
FULL_STAGE_WORLD, EP_WAVE = "full", "wave"
class Context:
    def __init__(self, *, replica_id, stage_id, ep_size):
        self.replica_id = replica_id
"""


def test_a_package_called_like_ours_stays_apart():
    before = {name: m for name, m in sys.modules.items() if name.split(".")[0] == "frontier"}
    path = list(sys.path)
    implementation = load(foreign("third"))
    after = {name: m for name, m in sys.modules.items() if name.split(".")[0] == "frontier"}
    assert after == before
    assert sys.path == path
    assert implementation.cls is not frontier.context.StageExecutionContext
    ticket = implementation.build(capacity=1, ep_size=1).enqueue_full_stage(operation_id=1)
    assert not isinstance(ticket, frontier.tickets.StageAdmissionTicket)
    assert implementation.full_stage_world == "FULL_STAGE_WORLD"


def test_an_import_made_later_finds_the_package_of_the_file(tmp_path):
    package = tmp_path / "frontier"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "answer.py").write_text("VALUE = 42\n")
    (package / "ctx.py").write_text(
        PLAIN + "    def late(self):\n        from frontier.answer import VALUE\n"
        "        return VALUE\n"
    )
    context = load(f"{package / 'ctx.py'}:Context").build(capacity=1, ep_size=1)
    assert context.late() == 42
    assert "frontier.answer" not in sys.modules


def test_two_packages_of_one_name_do_not_mix():
    assert load(foreign("second")).cls is not load(foreign("third")).cls
    assert "Only the FIFO head" not in (load(foreign("third")).cls.__doc__ or "")


def test_a_package_whose_init_needs_what_is_not_installed_is_loaded_with_a_note(tmp_path):
    package = tmp_path / "frontier"
    package.mkdir()
    (package / "__init__.py").write_text("import a_library_that_is_not_there\n")
    (package / "ctx.py").write_text(PLAIN)
    implementation = load(f"{package / 'ctx.py'}:Context")
    assert "a_library_that_is_not_there" in implementation.notes[0]


def test_a_module_is_found_by_name():
    implementation = load("frontier.context:StageExecutionContext")
    assert implementation.cls is frontier.context.StageExecutionContext


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no-colon", "FILE.py:Class"),
        ("nowhere.py:C", "no file nowhere.py"),
        ("no.such.module:C", "cannot import no.such.module"),
        ("frontier.context:Missing", "no class 'Missing'"),
    ],
)
def test_what_cannot_be_loaded_is_said_plainly(name, message):
    with pytest.raises(ContractInputError, match=message):
        load(name)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("class Context:\n  def __init__(self, *, ring): pass\n", "also requires ring"),
        ("class Context(:\n", "expected a Python file"),
        ("import not_there_at_all\nclass Context: pass\n", "not_there_at_all"),
        (
            "class Context:\n  def __init__(self, *, ep_size):\n    raise RuntimeError('boom')\n",
            "boom",
        ),
    ],
)
def test_a_bad_file_is_said_plainly(tmp_path, source, message):
    path = tmp_path / "ctx.py"
    path.write_text(source)
    with pytest.raises(ContractInputError, match=message):
        load(f"{path}:Context")
