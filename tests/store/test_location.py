"""Which store a path or URL names."""

from pathlib import Path

import pytest
from sqlalchemy import URL

from planish.core import StoreError
from planish.store import open_store
from planish.store.opening import locate


@pytest.mark.parametrize("place", ["a/b.db", Path("a/b.db"), "sqlite:///a/b.db"])
def test_a_file_is_meant_from_the_current_folder(place: str | Path) -> None:
    assert locate(place) == Path.cwd() / "a" / "b.db"


@pytest.mark.parametrize("place", ["/a/b.db", Path("/a/b.db"), "sqlite:////a/b.db"])
def test_an_absolute_file_is_meant_as_it_is(place: str | Path) -> None:
    assert locate(place) == Path("/a/b.db")


@pytest.mark.parametrize("place", ["~/b.db", Path("~/b.db"), "sqlite:///~/b.db"])
def test_the_home_folder_has_a_short_name(place: str | Path) -> None:
    assert locate(place) == Path.home() / "b.db"


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg", "postgresql+psycopg2"])
def test_postgres_is_spoken_to_by_psycopg(scheme: str) -> None:
    url = locate(f"{scheme}://smith:iron@forge:1234/planish")
    assert url == URL.create("postgresql+psycopg", "smith", "iron", "forge", 1234, "planish")


@pytest.mark.parametrize("place", ["mysql://forge/planish", "sqlite://", "http://x", "://x"])
def test_other_urls_name_no_store(place: str) -> None:
    with pytest.raises(StoreError) as caught:
        locate(place)
    assert "postgresql://USER@HOST/DATABASE" in caught.value.hint


def test_a_malformed_url_is_an_error_that_keeps_the_password() -> None:
    with pytest.raises(StoreError, match="malformed") as caught:
        locate("postgresql://smith:iron@forge:port/planish")
    assert "iron" not in str(caught.value)


def test_without_a_place_the_environment_names_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("PLANISH_STORE", raising=False)
    open_store().close()
    assert (tmp_path / "planish" / "planish.db").is_file()
    monkeypatch.setenv("PLANISH_STORE", str(tmp_path / "other.db"))
    assert locate(None) == tmp_path / "other.db"
    assert locate("given.db") == Path.cwd() / "given.db"
