"""The attacks, each noted down with its reason; make_attacks.py writes them."""

COLUMNS = ["file", "outcome", "code", "words", "options", "live", "why"]
MAX_FILE_BYTES = 18_000

attacks = []


def attack(file, why, content, words, code="Corrupt", outcome="error", options="-", live=False):
    """Notes an attack down. Long files are no better than short ones: the limit keeps them small."""
    assert len(content) <= MAX_FILE_BYTES, file
    assert not any(file == other["file"] for other, _ in attacks), file
    live = "yes" if live else "no"
    row = dict(zip(COLUMNS, [file, outcome, code, words, options, live, why]))
    assert not any("\t" in text or "\n" in text for text in row.values()), file
    attacks.append((row, content))
