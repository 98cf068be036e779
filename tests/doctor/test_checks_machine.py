"""What Handrail needs of the machine: found wrong, with the command that mends it."""

from pathlib import Path

import pytest

from handrail.doctor.checks import check_config, check_disk, check_page, check_permissions, check_ripgrep
from handrail.paths import Places


def test_a_fresh_home_is_well(home: Path) -> None:
    places = Places.under(home)
    places.make()
    assert [finding.level for finding in (*check_permissions(places), check_config(places))] == ["ok", "ok"]


def test_a_rule_whose_example_does_not_hold_is_named_with_its_line(home: Path) -> None:
    places = Places.under(home)
    places.config.write_text('\n[[rules]]\neffect = "allow"\ncommand = "git status"\nmatch = ["git push"]\n')
    found = check_config(places)
    assert found.level == "bad"
    assert f"{places.config}, line 2: `match` has the example `git push`" in found.says


def test_a_folder_that_others_can_enter_is_named(home: Path) -> None:
    places = Places.under(home)
    places.make()
    places.logs.chmod(0o750)
    [found] = check_permissions(places)
    assert (found.level, found.fix) == ("bad", f"chmod 700 {places.logs}")


def test_a_file_that_others_can_read_is_named(home: Path) -> None:
    places = Places.under(home)
    places.make()
    places.database.touch(0o644)
    [found] = check_permissions(places)
    assert (found.level, found.fix) == ("bad", f"chmod 600 {places.database}")


def test_settings_that_others_can_write_are_named(home: Path) -> None:
    places = Places.under(home)
    places.config.touch()
    places.config.chmod(0o644)
    assert check_permissions(places)[0].level == "ok"
    places.config.chmod(0o664)
    assert check_permissions(places)[0].fix == f"chmod 600 {places.config}"


def test_a_page_that_was_not_built_is_bad(tmp_path: Path) -> None:
    assert check_page(tmp_path).level == "bad"
    (tmp_path / "server" / "static").mkdir(parents=True)
    (tmp_path / "server" / "static" / "index.html").touch()
    assert check_page(tmp_path).level == "ok"


@pytest.mark.parametrize(("bound", "level"), [("LOW_BYTES", "warn"), ("NO_BYTES", "bad")])
def test_little_space_is_told_before_there_is_none(
    home: Path, bound: str, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert check_disk(Places.under(home)).level == "ok"
    monkeypatch.setattr(f"handrail.doctor.checks.{bound}", 1 << 60)
    assert check_disk(Places.under(home / "not" / "made")).level == level


def test_a_missing_ripgrep_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def scripts(_: str) -> str:
        return str(tmp_path)

    monkeypatch.setattr("sysconfig.get_path", scripts)
    monkeypatch.setattr("handrail.launcher.trusted_programs.SYSTEM_FOLDERS", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    assert check_ripgrep().level == "bad"
    (tmp_path / "rg").touch(0o755)
    assert check_ripgrep().says == f"Search uses {tmp_path / 'rg'}."
