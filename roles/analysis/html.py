"""Turns HTML into the text that a reader of the page sees: no markup, no addresses of links, nothing hidden."""

from __future__ import annotations

from roles.analysis.decoding import decode


def text_of_html(data: bytes) -> tuple[str, tuple[str, ...]]:
    """Return the visible text of a page, with warnings about its encoding.

    Raises:
        ImportError: the library is not installed.
        ValueError: the library could not make anything of it.
    """
    import html_to_markdown as library  # noqa: PLC0415  # part of an extra, and needed in a reading process only

    decoded = decode(data)
    options = library.ConversionOptions(
        output_format="plain",
        extract_metadata=False,
        skip_images=True,
        # It would leave out what it takes for navigation, and with it headings and forms that belong to the text.
        preprocessing=library.PreprocessingOptions(enabled=False),
    )
    try:
        return library.convert(decoded.text, options).content or "", decoded.warnings
    except library.ConversionError as error:
        raise ValueError(str(error)) from error
