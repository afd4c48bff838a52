"""A page read as a browser would: its elements, nothing from outside."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """Elements in order as (name, attributes), and words with the element they are in."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.words.append((self._open[-1] if self._open else "", data.strip()))

    def count(self, tag: str) -> int:
        """How many elements of a name there are."""
        return sum(name == tag for name, _ in self.elements)

    def addresses(self) -> list[str]:
        """Whatever the page would load or go to."""
        found = [attributes.get(name) for _, attributes in self.elements for name in ("src", "href", "action")]
        return [address for address in found if address]
