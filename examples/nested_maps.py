"""A map in a map, with a join for each and a person who is asked: the chapters of a book, and the pages of each."""

import anyio

from swarmbus import CLIENT, Event, EventTable, Joined, Lifecycle, Role, RoleContext, Swarm, join, on


class BookOrdered(Event):
    chapters: tuple[tuple[str, int], ...]


class ChapterStarted(Event):
    title: str
    pages: tuple[int, ...]


class PageWritten(Event):
    page: int
    text: str


class ChapterDone(Event):
    title: str
    text: str


class BookDone(Event):
    text: str


class Editor(Role):
    """Hands out chapters, and lets a person decide how long a chapter without a length becomes."""

    concurrency = 4

    @on(BookOrdered, each="chapters")
    async def start(self, chapter: tuple[str, int], ctx: RoleContext) -> ChapterStarted:
        title, pages = chapter
        if not pages:
            pages = await ctx.ask_person(f"How many pages for {title}?", reply=int)
        return ChapterStarted(title=title, pages=tuple(range(1, pages + 1)))


class Writer(Role):
    """Writes one page."""

    concurrency = 4

    @on(ChapterStarted, each="pages")
    async def write(self, event: ChapterStarted, page: int) -> PageWritten:
        return PageWritten(page=page, text=f"{event.title} p.{page}")


class Binder(Role):
    """Binds the pages of each chapter, and the chapters of the book, in their order."""

    @join(PageWritten, per=ChapterStarted)
    async def chapter(self, started: ChapterStarted, pages: Joined[PageWritten]) -> ChapterDone:
        return ChapterDone(title=started.title, text=", ".join(page.text for page in pages.done))

    @join(ChapterDone, per=BookOrdered)
    async def book(self, ordered: BookOrdered, chapters: Joined[ChapterDone]) -> BookDone:
        return BookDone(text="\n".join(chapter.text for chapter in chapters.done))


swarm = Swarm(
    Editor(),
    Writer(),
    Binder(),
    table=EventTable(
        (CLIENT, BookOrdered, ("editor", "binder")),
        ("editor", ChapterStarted, ("writer", "binder")),
        ("writer", PageWritten, "binder"),
        ("binder", ChapterDone, "binder"),
        ("binder", BookDone, CLIENT),
        result=BookDone,
    ),
)


async def main() -> None:
    """Order a book, and answer what the editor asks."""
    async with swarm.open() as live:
        run = await live.submit(BookOrdered(chapters=(("Dawn", 2), ("Noon", 0), ("Dusk", 1))))
        async for item in run.events():
            if isinstance(item, Lifecycle) and item.type == "question_asked":
                for question, asked in run.questions.items():
                    print(asked["question"], 3)
                    await run.answer(question, 3)
        print((await run.result()).output.text)


if __name__ == "__main__":
    anyio.run(main)
