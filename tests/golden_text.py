"""Golden texts: what the code wrote is compared with the file that a person has read and kept."""

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"


@dataclass(frozen=True)
class Golden:
    """Compares texts with files, or writes the files anew.

    Args:
        update: write instead of comparing (`pytest --update-golden`).
        folder: where the files are.
    """

    update: bool = False
    folder: Path = FOLDER

    def check(self, name: str, text: str) -> None:
        """Compare a text with a golden file.

        Args:
            name: the file in the folder; may hold subfolders.
            text: what the code wrote; one newline at the end is added where it is missing.

        Raises:
            AssertionError: the text differs, or there is no such file; pytest shows the difference.
        """
        path = self.folder / name
        text = text if text.endswith("\n") else text + "\n"
        if self.update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        assert path.exists(), f"no golden file {name}: make it with pytest --update-golden, and read it"
        assert text == path.read_text(encoding="utf-8"), f"{name} differs: mend the code or --update-golden"
